use super::TextError;
use super::deserializer::TextDeserializer;
use super::key::{self, MAX_STEPS, Step, is_same_key};
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Texts under keys, as a tree. Each text has a rank: of two texts under the same key, the tree contains the
/// one with the higher rank.
#[derive(Default)]
pub struct Texts {
    root: Branch,
    /// Number of branches below the root.
    branches: usize,
}

/// Maximum number of branches. Short keys with many levels would otherwise need much more memory than they
/// have bytes.
const MAX_BRANCHES: usize = 100_000;

/// A key with its text and all keys below it. The tree is at most 64 levels deep.
#[derive(Clone, Default)]
pub(super) struct Branch {
    pub(super) text: Option<Text>,
    pub(super) below: BTreeMap<Step, Branch>,
}

#[derive(Clone)]
pub(super) struct Text {
    pub(super) text: String,
    pub(super) rank: usize,
}

impl Texts {
    /// Adds a text. It replaces a text of the same or a lower rank.
    ///
    /// # Errors
    /// If the key has more than 64 levels, or all keys together have more than 100,000.
    pub fn insert(&mut self, key: &str, text: &str, rank: usize) -> Result<(), TextError> {
        let rule = || TextError::of_key(key, format!("must have at most {MAX_STEPS} levels"));
        let steps = key::steps(key).ok_or_else(rule)?;
        let mut branch = &mut self.root;
        for step in steps {
            branch = match branch.below.entry(step) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(_) if self.branches == MAX_BRANCHES => {
                    let rule =
                        format!("is too much: all keys together must have at most {MAX_BRANCHES} levels");
                    return Err(TextError::of_key(key, rule));
                }
                Entry::Vacant(new) => {
                    self.branches += 1;
                    new.insert(Branch::default())
                }
            };
        }
        branch.set(Text { text: text.to_owned(), rank });
        Ok(())
    }

    /// Returns the value of type `T` that consists of these texts.
    ///
    /// # Errors
    /// The first key whose text does not fit the type, and the rule that it breaks.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, TextError> {
        T::deserialize(TextDeserializer::new(&self.root)).map_err(|error| error.at(""))
    }
}

impl Branch {
    fn set(&mut self, text: Text) {
        if self.text.as_ref().is_none_or(|known| known.rank <= text.rank) {
            self.text = Some(text);
        }
    }

    /// Returns the highest rank of a text here or below.
    pub(super) fn rank(&self) -> Option<usize> {
        let below = self.below.values().filter_map(Self::rank).max();
        self.text.as_ref().map(|text| text.rank).max(below)
    }

    /// Returns the part that consists of texts of this rank.
    pub(super) fn only(&self, rank: usize) -> Self {
        let below = self.below.iter().filter(|(_, below)| below.has(rank));
        Self {
            text: self.text.clone().filter(|text| text.rank == rank),
            below: below.map(|(step, below)| (step.clone(), below.only(rank))).collect(),
        }
    }

    fn has(&self, rank: usize) -> bool {
        self.text.as_ref().is_some_and(|text| text.rank == rank)
            || self.below.values().any(|below| below.has(rank))
    }

    /// Adds the texts of another branch. They replace texts of the same or a lower rank.
    fn add(&mut self, other: Self) {
        if let Some(text) = other.text {
            self.set(text);
        }
        for (step, below) in other.below {
            self.below.entry(step).or_default().add(below);
        }
    }

    /// Returns the branches below, each with its name. A name that is written in another style than one of
    /// `fields` gets the name of the field, and joins the branch of other styles.
    pub(super) fn named(&self, fields: &[&str]) -> BTreeMap<String, (Step, Self)> {
        let mut named = BTreeMap::<_, (Option<usize>, Step, Self)>::new();
        let (exact, others): (Vec<_>, Vec<_>) =
            self.below.iter().partition(|(step, _)| fields.contains(&step.name().as_str()));
        // Of two texts of the same rank, the one under the exact name wins.
        for (step, branch) in others.into_iter().chain(exact) {
            let name = step.name();
            let field = fields.iter().find(|field| **field == name);
            let field = field.or_else(|| fields.iter().find(|field| is_same_key(field, &name)));
            let name = field.map_or(name, |field| (*field).to_owned());
            let (strongest, written, joined) =
                named.entry(name).or_insert_with(|| (None, step.clone(), Self::default()));
            let rank = branch.rank();
            if rank >= *strongest {
                (*strongest, *written) = (rank, step.clone());
            }
            joined.add(branch.clone());
        }
        named.into_iter().map(|(name, (_, written, joined))| (name, (written, joined))).collect()
    }
}

impl Step {
    pub(super) fn name(&self) -> String {
        match self {
            Self::Index(index) => index.to_string(),
            Self::Name(name) => name.clone(),
        }
    }
}
