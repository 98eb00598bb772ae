use super::snapshot::ChildrenSnapshot;
use crate::error::Error;
use crate::node::Node;
use std::fmt;
use std::sync::Arc;

/// A tree of nodes by their absolute paths, as a [`TreeCache`](super::TreeCache) knew them at one time.
///
/// A snapshot does not change. A change of the cache while a snapshot is held copies a few hundred pointers,
/// however many nodes there are; a change while none is held copies nothing. Cheap to clone.
#[derive(Clone)]
pub struct TreeSnapshot(pub(super) Arc<ChildrenSnapshot>);

impl TreeSnapshot {
    /// Returns the node at a path.
    pub fn get(&self, path: &str) -> Option<&Arc<Node>> {
        self.0.get(path)
    }

    /// Iterates over the nodes, ordered by path.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Arc<str>, &Arc<Node>)> + DoubleEndedIterator {
        self.0.iter()
    }

    /// Iterates over the children of the node at a path, by their absolute paths. Visits all nodes below that
    /// node.
    pub fn children<'a>(
        &'a self,
        path: &str,
    ) -> impl Iterator<Item = (&'a Arc<str>, &'a Arc<Node>)> + use<'a> {
        let from = if path == "/" { 1 } else { path.len() + 1 };
        self.descendants(path).filter(move |(below, _)| !below[from..].contains('/'))
    }

    /// Iterates over all nodes below the node at a path, excluding that node, by their absolute paths.
    pub fn descendants<'a>(
        &'a self,
        path: &str,
    ) -> impl Iterator<Item = (&'a Arc<str>, &'a Arc<Node>)> + use<'a> {
        let prefix = if path == "/" { path.to_owned() } else { format!("{path}/") };
        let first = self.0.child_after(Some(&prefix));
        let below = std::iter::successors(first, |(path, _)| self.0.child_after(Some(path)));
        below.take_while(move |(path, _)| path.starts_with(&prefix))
    }

    /// Iterates over the nodes that exist but could not be read or listed the last time, with the reason. The
    /// last known data of such a node is still shown.
    pub fn unreadable(&self) -> impl ExactSizeIterator<Item = (&Arc<str>, &Error)> {
        self.0.unreadable()
    }

    /// Number of known nodes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if no node is known.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

// The data of the nodes is not printed.
impl fmt::Debug for TreeSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TreeSnapshot")
            .field("nodes", &self.len())
            .field("unreadable", &self.unreadable().len())
            .finish_non_exhaustive()
    }
}
