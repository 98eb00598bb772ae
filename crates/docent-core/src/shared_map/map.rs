use super::iter::SharedMapIter;
use super::part::{Child, Part};
use std::fmt;
use std::sync::Arc;

/// An ordered map by name whose clones share their parts, for snapshots of views.
///
/// Cloning takes constant time. A change after a clone copies a few parts of at most 32 entries. The
/// [differences](Self::differences) of two maps are found without visiting the parts that they share.
///
/// # Examples
/// ```
/// use docent_core::recipe::SharedMap;
///
/// let mut map = SharedMap::new();
/// map.insert(&"a".into(), 1);
/// let before = map.clone();
/// map.insert(&"b".into(), 2);
/// assert_eq!((before.len(), map.len()), (1, 2));
/// ```
pub struct SharedMap<V> {
    root: Arc<Part<V>>,
    len: usize,
    /// Number of levels above the leaves.
    height: usize,
}

impl<V> SharedMap<V> {
    /// Creates an empty map.
    pub fn new() -> Self {
        Self { root: Arc::new(Part::Leaf(Vec::new())), len: 0, height: 0 }
    }

    /// Number of names.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if the map is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the value of `name`.
    pub fn get(&self, name: &str) -> Option<&V> {
        self.root.get(name).map(|(_, value)| value)
    }

    /// Returns true if the map contains `name`.
    pub fn contains(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Returns the name and value at `index` in order of names, starting from 0.
    pub fn at(&self, index: usize) -> Option<(&Arc<str>, &V)> {
        self.root.leaf_at(index).map(|(leaf, at)| (&leaf[at].0, &leaf[at].1))
    }

    /// Returns the index of `name` in order of names.
    ///
    /// # Errors
    /// The index at which `name` would be inserted, if the map does not contain it.
    pub fn position(&self, name: &str) -> Result<usize, usize> {
        self.root.position(name)
    }

    /// Returns the first name after `name` with its value; the first of all names for `None`.
    pub fn after(&self, name: Option<&str>) -> Option<(&Arc<str>, &V)> {
        let next = name.map_or(0, |name| self.position(name).map_or_else(|next| next, |at| at + 1));
        self.at(next)
    }

    /// Iterates over names and values, in order of names.
    pub fn iter(&self) -> SharedMapIter<'_, V> {
        SharedMapIter::new(&self.root, self.len)
    }

    /// The tree, and the number of its levels above the leaves.
    pub(super) fn root(&self) -> (&Arc<Part<V>>, usize) {
        (&self.root, self.height)
    }
}

impl<V: Clone> SharedMap<V> {
    /// Sets the value of `name`, and returns the previous value.
    pub fn insert(&mut self, name: &Arc<str>, value: V) -> Option<V> {
        let (before, split) = Arc::make_mut(&mut self.root).insert(name, value);
        self.len += usize::from(before.is_none());
        if let Some(upper) = split
            && let Some(lower) = Child::new(Arc::clone(&self.root))
        {
            self.root = Arc::new(Part::Inner(vec![lower, upper]));
            self.height += 1;
        }
        before
    }

    /// Removes `name`, and returns its value.
    pub fn remove(&mut self, name: &str) -> Option<V> {
        // Copies nothing if there is nothing to remove.
        if !self.contains(name) {
            return None;
        }
        let removed = Arc::make_mut(&mut self.root).remove(name);
        self.len -= usize::from(removed.is_some());
        while let Part::Inner(children) = &*self.root
            && let [only] = &**children
        {
            self.root = Arc::clone(&only.part);
            self.height -= 1;
        }
        removed
    }
}

impl<V> Clone for SharedMap<V> {
    fn clone(&self) -> Self {
        Self { root: Arc::clone(&self.root), len: self.len, height: self.height }
    }
}

impl<V> Default for SharedMap<V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<V: fmt::Debug> fmt::Debug for SharedMap<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<'a, V> IntoIterator for &'a SharedMap<V> {
    type Item = (&'a Arc<str>, &'a V);
    type IntoIter = SharedMapIter<'a, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
