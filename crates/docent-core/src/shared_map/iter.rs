use super::part::{Entry, Part};
use std::fmt;
use std::ops::Range;
use std::slice;
use std::sync::Arc;

/// Iterator over the names and values of a [`SharedMap`](super::SharedMap), in order of names. Created by
/// [`SharedMap::iter`](super::SharedMap::iter).
pub struct SharedMapIter<'a, V> {
    root: &'a Part<V>,
    /// Indices of the remaining entries.
    left: Range<usize>,
    /// Rest of the leaf at the front.
    front: slice::Iter<'a, Entry<V>>,
    /// Rest of the leaf at the back.
    back: slice::Iter<'a, Entry<V>>,
}

impl<'a, V> SharedMapIter<'a, V> {
    pub(super) fn new(root: &'a Part<V>, len: usize) -> Self {
        Self { root, left: 0..len, front: [].iter(), back: [].iter() }
    }
}

impl<'a, V> Iterator for SharedMapIter<'a, V> {
    type Item = (&'a Arc<str>, &'a V);

    fn next(&mut self) -> Option<Self::Item> {
        let index = self.left.next()?;
        if self.front.len() == 0 {
            let (leaf, at) = self.root.leaf_at(index)?;
            self.front = leaf[at..].iter();
        }
        self.front.next().map(|(name, value)| (name, value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.left.size_hint()
    }
}

impl<V> DoubleEndedIterator for SharedMapIter<'_, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let index = self.left.next_back()?;
        if self.back.len() == 0 {
            let (leaf, at) = self.root.leaf_at(index)?;
            self.back = leaf[..=at].iter();
        }
        self.back.next_back().map(|(name, value)| (name, value))
    }
}

impl<V> ExactSizeIterator for SharedMapIter<'_, V> {}

impl<V> Clone for SharedMapIter<'_, V> {
    fn clone(&self) -> Self {
        Self { root: self.root, left: self.left.clone(), front: self.front.clone(), back: self.back.clone() }
    }
}

impl<V> fmt::Debug for SharedMapIter<'_, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedMapIter").field("left", &self.left.len()).finish_non_exhaustive()
    }
}
