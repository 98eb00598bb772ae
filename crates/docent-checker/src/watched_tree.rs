use crate::journal::{Change, ChangeKind};
use docent_proto::{EventKind, Watches, parent};
use std::collections::BTreeMap;

/// The nodes after a transaction, as far as replies describe them.
#[derive(Debug)]
pub(crate) struct WatchedTree(BTreeMap<String, Node>);

#[derive(Debug, Clone, Copy)]
struct Node {
    /// The session that owns the node; 0 if the node is not ephemeral.
    owner: i64,
    /// The transaction that last set the data.
    set: i64,
    /// The transaction that last changed the set of children.
    children: i64,
}

impl WatchedTree {
    /// The tree of a new server.
    pub(crate) fn new() -> Self {
        let node = Node { owner: 0, set: 0, children: 0 };
        let there = ["/", "/zookeeper", "/zookeeper/config", "/zookeeper/quota"];
        Self(there.into_iter().map(|path| (path.to_owned(), node)).collect())
    }

    /// Applies a change.
    pub(crate) fn apply(&mut self, change: &Change) {
        match change.kind {
            ChangeKind::Created => {
                let node = Node { owner: change.owner, set: change.zxid, children: change.zxid };
                self.0.insert(change.path.clone(), node);
            }
            ChangeKind::Deleted => {
                self.0.remove(&change.path);
            }
            ChangeKind::Set => {
                if let Some(node) = self.0.get_mut(&change.path) {
                    node.set = change.zxid;
                }
                return;
            }
            _ => return,
        }
        if let Some(above) = parent(&change.path).and_then(|parent| self.0.get_mut(parent)) {
            above.children = change.zxid;
        }
    }

    /// Returns true if the node exists.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.0.contains_key(path)
    }

    /// Number of descendants of a node.
    pub(crate) fn count_below(&self, path: &str) -> usize {
        let prefix = if path == "/" { "/".to_owned() } else { format!("{path}/") };
        let behind = self.0.range(prefix.clone()..).take_while(|(path, _)| path.starts_with(&prefix));
        behind.filter(|(path, _)| **path != prefix).count()
    }

    /// The ephemeral nodes of a session whose paths start with `prefix`, in order.
    pub(crate) fn ephemerals(&self, session: i64, prefix: &str) -> Vec<&str> {
        let own = self.0.iter().filter(|(path, node)| node.owner == session && path.starts_with(prefix));
        own.map(|(path, _)| path.as_str()).collect()
    }

    /// The event that a watch reports when it is set again; `None` if nothing has changed since.
    fn missed(&self, path: &str, list: List, since: i64) -> Option<EventKind> {
        let node = self.0.get(path);
        match (list, node) {
            (List::Exist, node) => node.map(|_| EventKind::Created),
            (_, None) => Some(EventKind::Deleted),
            (List::Data, Some(node)) => (node.set > since).then_some(EventKind::DataChanged),
            (List::Child, Some(node)) => (node.children > since).then_some(EventKind::ChildrenChanged),
        }
    }

    /// The watches of a request that sets watches again: path, whether the watch is on children, and the
    /// event that is reported immediately.
    pub(crate) fn set_again<'w>(&self, watches: &'w Watches) -> Vec<(&'w str, bool, Option<EventKind>)> {
        let lists =
            [(List::Data, &watches.data), (List::Exist, &watches.exist), (List::Child, &watches.child)];
        let all = lists.into_iter().flat_map(|(list, paths)| paths.iter().map(move |path| (list, path)));
        let since = watches.relative_zxid;
        all.map(|(list, path)| (path.as_str(), list == List::Child, self.missed(path, list, since))).collect()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum List {
    Data,
    Exist,
    Child,
}
