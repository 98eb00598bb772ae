use crate::journal::{Change, ChangeKind};
use docent_proto::{EventKind, Request, WatchKind, WatchMode, parent};
use std::collections::BTreeMap;

/// An event that a watch reports: its kind and path.
pub(crate) type WatchReport = (EventKind, String);

/// The watches of one link as ZooKeeper 3.8 keeps them: at most one for data and one for children of each
/// path. A persistent watch is of both kinds.
#[derive(Debug, Default)]
pub(crate) struct WatchModel {
    data: Aspect,
    children: Aspect,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Once,
    Persistent,
    Recursive,
}

#[derive(Debug, Default)]
struct Aspect(BTreeMap<String, Mode>);

impl Aspect {
    fn set(&mut self, path: &str, mode: Mode) {
        self.0.insert(path.to_owned(), mode);
    }

    /// Returns true if a change of the node at `path` is reported to the link. A one-shot watch is removed
    /// when it fires.
    fn fire(&mut self, path: &str, kind: EventKind) -> bool {
        let concerns_all_below = kind != EventKind::ChildrenChanged;
        let own = match self.0.get(path) {
            Some(Mode::Once) => self.0.remove(path).is_some(),
            Some(Mode::Persistent) => true,
            Some(Mode::Recursive) => concerns_all_below,
            None => false,
        };
        own || (concerns_all_below && self.is_recursive_above(path))
    }

    fn is_recursive_above(&self, path: &str) -> bool {
        let mut above = std::iter::successors(parent(path), |path| parent(path));
        above.any(|path| self.0.get(path) == Some(&Mode::Recursive))
    }
}

impl WatchModel {
    /// Returns true if there are no watches.
    pub(crate) fn is_empty(&self) -> bool {
        self.data.0.is_empty() && self.children.0.is_empty()
    }

    /// Sets the watches of a successful request. `found` is true if the request's node exists.
    pub(crate) fn set(&mut self, request: &Request, found: bool) {
        match request {
            Request::AddWatch { path, mode } => self.stay(path, *mode),
            Request::SetWatches2 { persistent, recursive, .. } => {
                persistent.iter().for_each(|path| self.stay(path, WatchMode::Persistent));
                recursive.iter().for_each(|path| self.stay(path, WatchMode::PersistentRecursive));
            }
            Request::Exists { path, watch: true } => self.data.set(path, Mode::Once),
            Request::GetData { path, watch: true } if found => self.data.set(path, Mode::Once),
            Request::GetChildren { path, watch: true } | Request::GetChildren2 { path, watch: true }
                if found =>
            {
                self.children.set(path, Mode::Once);
            }
            _ => {}
        }
    }

    /// Re-arms a one-shot watch, on children or on data and existence.
    pub(crate) fn set_again(&mut self, path: &str, is_on_children: bool) {
        if is_on_children { &mut self.children } else { &mut self.data }.set(path, Mode::Once);
    }

    fn stay(&mut self, path: &str, mode: WatchMode) {
        let mode = match mode {
            WatchMode::Persistent => Mode::Persistent,
            WatchMode::PersistentRecursive => Mode::Recursive,
        };
        self.data.set(path, mode);
        self.children.set(path, mode);
    }

    /// Returns true if there is a watch of a kind.
    pub(crate) fn has(&self, path: &str, kind: WatchKind) -> bool {
        let (data, children) = (self.data.0.contains_key(path), self.children.0.contains_key(path));
        match kind {
            WatchKind::Data => data,
            WatchKind::Children => children,
            WatchKind::Any => data || children,
        }
    }

    /// Removes watches of a kind.
    pub(crate) fn remove(&mut self, path: &str, kind: WatchKind) {
        if kind != WatchKind::Children {
            self.data.0.remove(path);
        }
        if kind != WatchKind::Data {
            self.children.0.remove(path);
        }
    }

    /// Returns the events with which a change is reported.
    pub(crate) fn fire(&mut self, change: &Change) -> Vec<WatchReport> {
        let (path, above) = (change.path.as_str(), parent(&change.path).unwrap_or("/"));
        let kind = match change.kind {
            ChangeKind::Created => EventKind::Created,
            ChangeKind::Deleted => EventKind::Deleted,
            ChangeKind::Set => EventKind::DataChanged,
            _ => return Vec::new(),
        };
        let mut is_reported = self.data.fire(path, kind);
        if kind == EventKind::Deleted {
            is_reported |= self.children.fire(path, kind);
        }
        let moves_children = kind != EventKind::DataChanged;
        let is_parent_reported = moves_children && self.children.fire(above, EventKind::ChildrenChanged);
        let own = is_reported.then(|| (kind, path.to_owned()));
        own.into_iter()
            .chain(is_parent_reported.then(|| (EventKind::ChildrenChanged, above.to_owned())))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn change(kind: ChangeKind, path: &str) -> Change {
        Change { zxid: 1, at: Duration::ZERO, session: 1, kind, path: path.to_owned(), owner: 0 }
    }

    fn staying(mode: WatchMode) -> WatchModel {
        let mut watches = WatchModel::default();
        watches.set(&Request::AddWatch { path: "/a".into(), mode }, false);
        watches
    }

    #[test]
    fn a_persistent_watch_reports_every_change_of_its_node_and_its_children() {
        let mut watches = staying(WatchMode::Persistent);
        for _ in 0..2 {
            let created = watches.fire(&change(ChangeKind::Created, "/a/b"));
            assert_eq!(created, [(EventKind::ChildrenChanged, "/a".to_owned())]);
            assert!(watches.fire(&change(ChangeKind::Set, "/a/b")).is_empty());
            assert_eq!(watches.fire(&change(ChangeKind::Deleted, "/a")), [(EventKind::Deleted, "/a".into())]);
            assert!(watches.fire(&change(ChangeKind::AclSet, "/a")).is_empty());
        }
    }

    #[test]
    fn a_recursive_watch_reports_its_subtree_and_no_child_list_changes() {
        let mut watches = staying(WatchMode::PersistentRecursive);
        let created = watches.fire(&change(ChangeKind::Created, "/a/b/c"));
        assert_eq!(created, [(EventKind::Created, "/a/b/c".to_owned())]);
        assert!(watches.fire(&change(ChangeKind::Created, "/ab")).is_empty());
        watches.remove("/a", WatchKind::Data);
        assert!(watches.fire(&change(ChangeKind::Set, "/a/b")).is_empty());
        assert_eq!(watches.fire(&change(ChangeKind::Deleted, "/a/b")).len(), 1, "a child watch remains");
    }

    #[test]
    fn a_read_sets_a_one_shot_watch_and_replaces_a_persistent_one() {
        let mut watches = staying(WatchMode::PersistentRecursive);
        watches.set(&Request::GetData { path: "/a".into(), watch: true }, true);
        assert_eq!(watches.fire(&change(ChangeKind::Set, "/a")).len(), 1);
        assert!(watches.fire(&change(ChangeKind::Set, "/a")).is_empty());
        watches.set(&Request::GetData { path: "/none".into(), watch: true }, false);
        assert!(!watches.has("/none", WatchKind::Any));
        watches.set(&Request::Exists { path: "/none".into(), watch: true }, false);
        assert!(watches.has("/none", WatchKind::Data) && !watches.has("/none", WatchKind::Children));
    }
}
