use super::TreeChange;
use crate::{Rejection, Snapshot};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The values of a [`ConfigTree`](crate::ConfigTree) at one time. A snapshot never changes.
pub struct TreeSnapshot<T> {
    pub(super) values: BTreeMap<Arc<str>, Arc<Snapshot<T>>>,
    pub(super) refused: BTreeMap<Arc<str>, Rejection>,
}

impl<T> TreeSnapshot<T> {
    /// Returns the last valid value of a key.
    pub fn get(&self, key: &str) -> Option<&Arc<Snapshot<T>>> {
        self.values.get(key)
    }

    /// Returns the keys with their last valid values, in the order of keys.
    pub fn iter(
        &self,
    ) -> impl ExactSizeIterator<Item = (&Arc<str>, &Arc<Snapshot<T>>)> + DoubleEndedIterator {
        self.values.iter()
    }

    /// Returns the keys whose current value is invalid, with the reason. If there was a valid value before,
    /// it is among the values.
    pub fn refused(&self) -> impl ExactSizeIterator<Item = (&Arc<str>, &Rejection)> {
        self.refused.iter()
    }

    /// Returns the number of keys with a valid value.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns true if no key has a valid value.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Returns the changes since `earlier`, by key.
    pub(super) fn since(&self, earlier: &Self) -> Vec<TreeChange<T>> {
        let deleted = earlier.values.keys().filter(|key| !self.values.contains_key(*key));
        let mut changes: Vec<_> = deleted.map(|key| TreeChange::Deleted(Arc::clone(key))).collect();
        for (key, value) in &self.values {
            if !earlier.get(key).is_some_and(|known| known.revision() == value.revision()) {
                changes.push(TreeChange::Value(Arc::clone(key), Arc::clone(value)));
            }
        }
        for (key, refusal) in &self.refused {
            let known = earlier.refused.get(key);
            if !known.is_some_and(|known| known.revision() == refusal.revision()) {
                changes.push(TreeChange::Refused(Arc::clone(key), refusal.clone()));
            }
        }
        changes
    }
}

impl<T> Default for TreeSnapshot<T> {
    fn default() -> Self {
        Self { values: BTreeMap::new(), refused: BTreeMap::new() }
    }
}

impl<T> Clone for TreeSnapshot<T> {
    fn clone(&self) -> Self {
        Self { values: self.values.clone(), refused: self.refused.clone() }
    }
}

impl<T> fmt::Debug for TreeSnapshot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TreeSnapshot").field("values", &self.values).field("refused", &self.refused).finish()
    }
}
