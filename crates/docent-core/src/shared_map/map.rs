use super::iter::SharedMapIter;
use super::part::{Child, Part};
use std::fmt;
use std::sync::Arc;

/// Map in the order of its names, whose clones share their parts: to clone one costs nothing, a change then
/// copies a few parts of at most 32 entries, and the [differences](Self::differences) of two are found
/// without a look at the parts that they share. For snapshots of views.
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
    /// An empty one.
    pub fn new() -> Self {
        Self { root: Arc::new(Part::Leaf(Vec::new())), len: 0, height: 0 }
    }

    /// Number of names.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True when it has none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Value of `name`.
    pub fn get(&self, name: &str) -> Option<&V> {
        self.root.get(name).map(|(_, value)| value)
    }

    /// True when it has `name`.
    pub fn contains(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Name and value number `index` in the order of names, from 0.
    pub fn at(&self, index: usize) -> Option<(&Arc<str>, &V)> {
        self.root.leaf_at(index).map(|(leaf, at)| (&leaf[at].0, &leaf[at].1))
    }

    /// Number of `name` in the order of names.
    ///
    /// # Errors
    /// The number that it would have, when there is no such name.
    pub fn position(&self, name: &str) -> Result<usize, usize> {
        self.root.position(name)
    }

    /// Name and value that come first after `name`; the very first for `None`.
    pub fn after(&self, name: Option<&str>) -> Option<(&Arc<str>, &V)> {
        let next = name.map_or(0, |name| self.position(name).map_or_else(|next| next, |at| at + 1));
        self.at(next)
    }

    /// Names and values, in the order of names.
    pub fn iter(&self) -> SharedMapIter<'_, V> {
        SharedMapIter::new(&self.root, self.len)
    }

    /// The tree and the number of its levels above the leaves.
    pub(super) fn root(&self) -> (&Arc<Part<V>>, usize) {
        (&self.root, self.height)
    }
}

impl<V: Clone> SharedMap<V> {
    /// Sets the value of `name`, and returns the one before.
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

    /// Takes `name` out, and returns its value.
    pub fn remove(&mut self, name: &str) -> Option<V> {
        // Copies nothing where there is nothing to take out.
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
