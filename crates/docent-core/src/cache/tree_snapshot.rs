use super::snapshot::ChildrenSnapshot;
use crate::error::Error;
use crate::node::Node;
use std::fmt;
use std::sync::Arc;

/// A tree of nodes, as a [`TreeCache`](super::TreeCache) knew them at one time, by their whole paths.
///
/// It does not change. While one is held the cache's next change copies the map of the nodes, though not
/// their data; a change while none is held copies nothing. Cheap to clone.
#[derive(Clone)]
pub struct TreeSnapshot(pub(super) Arc<ChildrenSnapshot>);

impl TreeSnapshot {
    /// The node at a path.
    pub fn get(&self, path: &str) -> Option<&Arc<Node>> {
        self.0.get(path)
    }

    /// The nodes by path, in the order of paths.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Arc<str>, &Arc<Node>)> + DoubleEndedIterator {
        self.0.iter()
    }

    /// The children of the node at a path, by their whole paths. It looks at all nodes below that one.
    pub fn children<'a>(
        &'a self,
        path: &str,
    ) -> impl Iterator<Item = (&'a Arc<str>, &'a Arc<Node>)> + use<'a> {
        let from = if path == "/" { 1 } else { path.len() + 1 };
        self.descendants(path).filter(move |(below, _)| !below[from..].contains('/'))
    }

    /// All nodes below the node at a path, which is not among them, by their whole paths.
    pub fn descendants<'a>(
        &'a self,
        path: &str,
    ) -> impl Iterator<Item = (&'a Arc<str>, &'a Arc<Node>)> + use<'a> {
        let prefix = if path == "/" { path.to_owned() } else { format!("{path}/") };
        let first = self.0.child_after(Some(&prefix));
        let below = std::iter::successors(first, |(path, _)| self.0.child_after(Some(path)));
        below.take_while(move |(path, _)| path.starts_with(&prefix))
    }

    /// The nodes that exist but could not be read or listed the last time, and why. The last known data of
    /// such a node is still shown.
    pub fn unreadable(&self) -> impl ExactSizeIterator<Item = (&Arc<str>, &Error)> {
        self.0.unreadable()
    }

    /// Number of nodes that are known.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True when no node is known.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

// The nodes' data is not printed.
impl fmt::Debug for TreeSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TreeSnapshot")
            .field("nodes", &self.len())
            .field("unreadable", &self.unreadable().len())
            .finish_non_exhaustive()
    }
}
