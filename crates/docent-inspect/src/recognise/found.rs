use crate::report::{Contender, Kind, Member, Recipe, Writer};
use std::collections::BTreeSet;

/// A recognised recipe.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) recipe: Recipe,
    /// Other kinds with the same layout.
    pub(crate) may_be: Vec<Kind>,
    /// Path of the recipe whose state includes this one.
    pub(crate) part_of: Option<String>,
    writers: BTreeSet<Writer>,
}

impl Found {
    pub(super) fn new(recipe: Recipe) -> Self {
        Self { recipe, may_be: Vec::new(), part_of: None, writers: BTreeSet::new() }
    }

    pub(super) fn may_be(mut self, kinds: impl IntoIterator<Item = Kind>) -> Self {
        self.may_be.extend(kinds);
        self
    }

    pub(super) fn part_of(mut self, path: String) -> Self {
        self.part_of = Some(path);
        self
    }

    /// Returns the libraries whose formats were seen. `DocentOrCurator` is omitted if one of the two was seen
    /// as well.
    pub(crate) fn writers(&self) -> Vec<Writer> {
        let is_certain = self.writers.contains(&Writer::Docent) || self.writers.contains(&Writer::Curator);
        let is_listed = |writer: &Writer| !(is_certain && *writer == Writer::DocentOrCurator);
        self.writers.iter().copied().filter(is_listed).collect()
    }

    pub(super) fn by(mut self, writers: impl IntoIterator<Item = Writer>) -> Self {
        self.writers.extend(writers);
        self
    }
}

/// Returns the libraries that wrote the contenders.
pub(super) fn writers(contenders: &[Contender]) -> BTreeSet<Writer> {
    contenders.iter().map(|contender| contender.writer).collect()
}

/// Returns the libraries that wrote the members.
pub(super) fn member_writers(members: &[Member]) -> BTreeSet<Writer> {
    members.iter().map(|member| member.writer).collect()
}
