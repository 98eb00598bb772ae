use super::children::ChildrenEvent;
use crate::error::Error;
use crate::node::{Node, Stat};
use crate::shared_map::SharedMap;
use std::fmt;
use std::sync::Arc;

/// The children of a node with their data, as a [`ChildrenCache`](super::ChildrenCache) knew them at one
/// time.
///
/// A snapshot does not change. Snapshots of one cache share their common parts: a change while a snapshot is
/// held copies a few hundred pointers, however many children there are; a change while none is held copies
/// nothing.
#[derive(Clone, Default)]
pub struct ChildrenSnapshot {
    pub(super) folder: Option<Stat>,
    children: SharedMap<Arc<Node>>,
    unreadable: SharedMap<Error>,
}

impl ChildrenSnapshot {
    /// The stat of the parent node, as of the last listing; `None` if that node does not exist, or if nothing
    /// was read yet.
    pub fn folder(&self) -> Option<&Stat> {
        self.folder.as_ref()
    }

    /// Returns a child by its name.
    pub fn get(&self, name: &str) -> Option<&Arc<Node>> {
        self.children.get(name)
    }

    /// Iterates over the children, ordered by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Arc<str>, &Arc<Node>)> + DoubleEndedIterator {
        self.children.iter()
    }

    /// Iterates over the children that exist but could not be read the last time, with the reason. The last
    /// known data of such a child is still among the children.
    pub fn unreadable(&self) -> impl ExactSizeIterator<Item = (&Arc<str>, &Error)> {
        self.unreadable.iter()
    }

    /// Number of children whose data is known.
    pub fn len(&self) -> usize {
        self.children.len()
    }

    /// Returns true if no child's data is known.
    pub fn is_empty(&self) -> bool {
        self.children.is_empty()
    }

    /// Applies an event, and returns the event to report: a child that was already known is updated, not
    /// added.
    pub(super) fn enter(&mut self, event: &ChildrenEvent) -> ChildrenEvent {
        match event {
            ChildrenEvent::Added(name, node) => return self.apply(name, node),
            ChildrenEvent::Delete(name) => self.delete(name),
            ChildrenEvent::Unreadable(name, error) => {
                self.unreadable.insert(name, error.clone());
            }
            _ => {}
        }
        event.clone()
    }

    fn apply(&mut self, name: &Arc<str>, node: &Arc<Node>) -> ChildrenEvent {
        self.unreadable.remove(name);
        let before = self.children.insert(name, Arc::clone(node));
        let event = match before {
            Some(before) if before.stat.czxid == node.stat.czxid => ChildrenEvent::Updated,
            _ => ChildrenEvent::Added,
        };
        event(Arc::clone(name), Arc::clone(node))
    }

    fn delete(&mut self, name: &str) {
        self.unreadable.remove(name);
        self.children.remove(name);
    }

    /// Returns the first child whose name is after `name`.
    pub(super) fn child_after(&self, name: Option<&str>) -> Option<(&Arc<str>, &Arc<Node>)> {
        self.children.after(name)
    }

    /// Returns the first unreadable child whose name is after `name`.
    pub(super) fn unreadable_after(&self, name: Option<&str>) -> Option<(&Arc<str>, &Error)> {
        self.unreadable.after(name)
    }
}

// The data of the nodes is not printed.
impl fmt::Debug for ChildrenSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChildrenSnapshot")
            .field("folder", &self.folder)
            .field("children", &self.children.len())
            .field("unreadable", &self.unreadable)
            .finish()
    }
}
