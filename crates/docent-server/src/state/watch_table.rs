use super::recursive::RecursiveWatches;
use docent_proto::{EventKind, WatchMode};
use std::collections::{BTreeMap, BTreeSet};

/// Lifetime and reach of a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// The watch is removed after it has fired.
    Once,
    /// The watch is persistent.
    Stays(WatchMode),
}

impl Mode {
    fn is_recursive(self) -> bool {
        self == Self::Stays(WatchMode::PersistentRecursive)
    }

    /// Returns whether a watch on a node reports this change. A recursive watch does not report changes of
    /// the set of children.
    fn reports(self, kind: EventKind) -> bool {
        kind != EventKind::ChildrenChanged || !self.is_recursive()
    }

    /// Returns whether a watch is removed after it has fired.
    fn is_spent(self) -> bool {
        match self {
            Self::Once => !planted!(OneShotStays),
            Self::Stays(mode) => planted!(PersistentFiresOnce) && mode == WatchMode::Persistent,
        }
    }
}

/// The watches on one aspect of nodes, by path. A session has at most one watch on each path.
#[derive(Debug, Clone, Default)]
pub(crate) struct WatchTable {
    by_path: BTreeMap<String, BTreeMap<i64, Mode>>,
    count: usize,
    recursive: RecursiveWatches,
}

/// Sessions that a change concerns.
#[derive(Debug, Default)]
pub(crate) struct Triggered {
    /// Sessions with a watch that fired.
    pub(crate) sessions: BTreeSet<i64>,
    /// Sessions whose watch was removed because it fired.
    pub(crate) spent: Vec<i64>,
}

impl WatchTable {
    /// Sets a watch, which replaces a watch of another mode.
    pub(crate) fn add(&mut self, session: i64, path: &str, mode: Mode) {
        let old = match self.by_path.get_mut(path) {
            Some(sessions) => sessions.insert(session, mode),
            None => self.by_path.entry(path.to_owned()).or_default().insert(session, mode),
        };
        self.count += usize::from(old.is_none());
        match mode.is_recursive() {
            true => self.recursive.add(session, path),
            false => self.forget_recursive(session, path, old),
        }
    }

    /// Removes a watch. Returns `false` if there was none.
    pub(crate) fn remove(&mut self, session: i64, path: &str) -> bool {
        let Some(sessions) = self.by_path.get_mut(path) else { return false };
        let old = sessions.remove(&session);
        if sessions.is_empty() {
            self.by_path.remove(path);
        }
        self.count -= usize::from(old.is_some());
        self.forget_recursive(session, path, old);
        old.is_some()
    }

    pub(crate) fn get(&self, session: i64, path: &str) -> Option<Mode> {
        self.by_path.get(path)?.get(&session).copied()
    }

    /// Returns whether any session watches the path.
    pub(crate) fn is_watched(&self, path: &str) -> bool {
        self.by_path.contains_key(path)
    }

    /// Iterates over the sessions that watch each path, in the order of the paths.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, impl Iterator<Item = i64>)> {
        self.by_path.iter().map(|(path, sessions)| (path.as_str(), sessions.keys().copied()))
    }

    /// Returns the number of watched paths.
    pub(crate) fn path_count(&self) -> usize {
        self.by_path.len()
    }

    /// Returns the number of watches.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Fires the watches on a changed node, and removes the one-shot watches among them.
    pub(crate) fn trigger(&mut self, path: &str, kind: EventKind) -> Triggered {
        let mut triggered = self.trigger_at(path, kind);
        if reaches_above(path, kind) {
            triggered.sessions.extend(self.recursive.at_and_above(path));
        }
        triggered
    }

    /// Does the same as [`trigger`](Self::trigger), for the watches of one session.
    pub(crate) fn trigger_of(&mut self, session: i64, path: &str, kind: EventKind) -> Triggered {
        let mode = self.get(session, path);
        let is_reported = mode.is_some_and(|mode| mode.reports(kind))
            || (reaches_above(path, kind) && self.recursive.reaches(session, path));
        let is_spent = mode.is_some_and(Mode::is_spent);
        if is_spent {
            self.remove(session, path);
        }
        let one = |is_one: bool| is_one.then_some(session).into_iter();
        Triggered { sessions: one(is_reported).collect(), spent: one(is_spent).collect() }
    }

    fn trigger_at(&mut self, path: &str, kind: EventKind) -> Triggered {
        let Some(watching) = self.by_path.get_mut(path) else { return Triggered::default() };
        let with = |is_one: &dyn Fn(Mode) -> bool| -> Vec<i64> {
            watching.iter().filter(|(_, mode)| is_one(**mode)).map(|(session, _)| *session).collect()
        };
        let sessions = BTreeSet::from_iter(with(&|mode| mode.reports(kind)));
        let spent = with(&Mode::is_spent);
        self.count -= spent.len();
        watching.retain(|_, mode| !mode.is_spent());
        if watching.is_empty() {
            self.by_path.remove(path);
        }
        Triggered { sessions, spent }
    }

    fn forget_recursive(&mut self, session: i64, path: &str, old: Option<Mode>) {
        if old.is_some_and(Mode::is_recursive) {
            self.recursive.remove(session, path);
        }
    }
}

/// Returns whether recursive watches at the node and its ancestors report a change.
fn reaches_above(path: &str, kind: EventKind) -> bool {
    let misses =
        planted!(RecursiveMissesDeepDeletes) && kind == EventKind::Deleted && path.matches('/').count() > 3;
    kind != EventKind::ChildrenChanged && !misses
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECURSIVE: Mode = Mode::Stays(WatchMode::PersistentRecursive);

    #[test]
    fn a_recursive_watch_covers_its_subtree_until_it_is_replaced() {
        let mut table = WatchTable::default();
        table.add(1, "/", RECURSIVE);
        table.add(3, "/a/b", RECURSIVE);
        let triggered =
            |table: &mut WatchTable, path: &str, kind| Vec::from_iter(table.trigger(path, kind).sessions);
        assert_eq!(triggered(&mut table, "/a", EventKind::Created), [1]);
        assert_eq!(triggered(&mut table, "/a/b/c", EventKind::Created), [1, 3]);
        assert_eq!(triggered(&mut table, "/a/b", EventKind::Deleted), [1, 3]);
        assert!(triggered(&mut table, "/a/b", EventKind::ChildrenChanged).is_empty());
        table.add(3, "/a/b", Mode::Once);
        assert_eq!(triggered(&mut table, "/a/b/c", EventKind::Deleted), [1]);
        table.add(3, "/a/b", RECURSIVE);
        table.remove(1, "/");
        assert_eq!(triggered(&mut table, "/a/b/c", EventKind::DataChanged), [3]);
    }
}
