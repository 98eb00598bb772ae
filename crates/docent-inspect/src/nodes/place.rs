use super::{Data, Folder, View};
use crate::report::Since;
use docent_core::Stat;

/// Number of children that are read to find the kind of all of them.
const SAMPLE: usize = 4;

/// Node to be recognised, with its children.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) view: &'a View<'a>,
    pub(crate) path: &'a str,
    /// Names of the children in order.
    pub(crate) names: &'a [String],
    pub(crate) stat: &'a Stat,
}

impl<'a> Place<'a> {
    pub(crate) fn new(view: &'a View<'a>, path: &'a str, folder: &'a Folder) -> Self {
        Self { view, path, names: &folder.names, stat: &folder.stat }
    }

    /// Returns the path of a child.
    pub(crate) fn child(&self, name: &str) -> String {
        join(self.path, name)
    }

    /// Returns the data of a child.
    pub(crate) fn data(&self, name: &str) -> Option<&'a Data> {
        self.view.data(&self.child(name))
    }

    /// Returns the children of a child.
    pub(crate) fn folder(&self, name: &str) -> Option<&'a Folder> {
        self.view.folder(&self.child(name))
    }

    /// Returns the names of the children of a child, or none if there is no such child.
    pub(crate) fn names_below(&self, name: &str) -> &'a [String] {
        let folder = if self.has(name) { self.folder(name) } else { None };
        folder.map(|folder| &*folder.names).unwrap_or_default()
    }

    /// Returns the data of the node itself, without a read if it is empty.
    pub(crate) fn own_data(&self) -> Option<&'a [u8]> {
        if self.stat.data_length == 0 {
            return Some(&[]);
        }
        self.view.data(self.path)?.bytes.as_deref()
    }

    /// Returns the name of the node itself, which is empty for the root.
    pub(crate) fn name(&self) -> &'a str {
        self.path.rsplit_once('/').map_or("", |(_, name)| name)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.names.iter().any(|child| child == name)
    }

    /// Returns true if there are children and all of them are among `known`.
    pub(crate) fn has_only(&self, known: &[&str]) -> bool {
        !self.names.is_empty() && self.names.iter().all(|name| known.contains(&name.as_str()))
    }

    /// Returns the first few children.
    pub(crate) fn sample(&self) -> impl Iterator<Item = &'a str> {
        self.names.iter().take(SAMPLE).map(String::as_str)
    }

    /// Returns true if the child was listed but no longer existed when it was read.
    pub(crate) fn was_deleted(&self, name: &str) -> bool {
        self.view.was_deleted(&self.child(name))
    }

    pub(crate) fn modified(&self) -> Since {
        self.view.since(self.stat.modified)
    }
}

/// Returns true if at least one sampled child shows the mark and none lacks it. Children that may not be read
/// or were deleted meanwhile do not count.
pub(crate) fn agree(marks: &[Option<bool>]) -> bool {
    let mut known = marks.iter().flatten();
    known.clone().next().is_some() && known.all(|mark| *mark)
}

/// Returns the path of the child `name` of the node at `path`.
pub(crate) fn join(path: &str, name: &str) -> String {
    if path == "/" { format!("/{name}") } else { format!("{path}/{name}") }
}
