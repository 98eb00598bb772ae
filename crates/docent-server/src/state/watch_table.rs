use super::recursive::RecursiveWatches;
use docent_proto::{EventKind, WatchMode};
use std::collections::{BTreeMap, BTreeSet};

/// Life and reach of a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// It is gone once it came true.
    Once,
    /// It stays.
    Stays(WatchMode),
}

impl Mode {
    fn is_recursive(self) -> bool {
        self == Self::Stays(WatchMode::PersistentRecursive)
    }
}

/// The watches on one aspect of nodes, by path. A session has one at most on each path.
#[derive(Debug, Clone, Default)]
pub(crate) struct WatchTable {
    by_path: BTreeMap<String, BTreeMap<i64, Mode>>,
    count: usize,
    recursive: RecursiveWatches,
}

/// Sessions that a change concerns.
#[derive(Debug, Default)]
pub(crate) struct Triggered {
    /// Those with a watch that came true.
    pub(crate) sessions: BTreeSet<i64>,
    /// Those whose watch is gone by that.
    pub(crate) spent: Vec<i64>,
}

impl WatchTable {
    /// Sets a watch. It takes the place of one of another mode.
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

    /// Removes a watch; false when there was none.
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

    /// True when any session watches the path.
    pub(crate) fn is_watched(&self, path: &str) -> bool {
        self.by_path.contains_key(path)
    }

    /// The sessions that watch each path, in the order of the paths.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, impl Iterator<Item = i64>)> {
        self.by_path.iter().map(|(path, sessions)| (path.as_str(), sessions.keys().copied()))
    }

    /// Number of watched paths.
    pub(crate) fn path_count(&self) -> usize {
        self.by_path.len()
    }

    /// Number of watches.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Takes note of a change of a node, and removes the watches that come true once. A recursive watch tells
    /// nothing of sets of children.
    pub(crate) fn trigger(&mut self, path: &str, kind: EventKind) -> Triggered {
        let is_told = |mode: Mode| kind != EventKind::ChildrenChanged || !mode.is_recursive();
        let mut triggered = self.trigger_at(path, is_told);
        let misses = planted!(RecursiveMissesDeepDeletes)
            && kind == EventKind::Deleted
            && path.matches('/').count() > 3;
        if kind != EventKind::ChildrenChanged && !misses {
            triggered.sessions.extend(self.recursive.at_and_above(path));
        }
        triggered
    }

    fn trigger_at(&mut self, path: &str, is_told: impl Fn(Mode) -> bool) -> Triggered {
        let Some(watching) = self.by_path.get_mut(path) else { return Triggered::default() };
        let with = |is_one: &dyn Fn(Mode) -> bool| -> Vec<i64> {
            watching.iter().filter(|(_, mode)| is_one(**mode)).map(|(session, _)| *session).collect()
        };
        let sessions = BTreeSet::from_iter(with(&is_told));
        if planted!(OneShotStays) {
            return Triggered { sessions, spent: Vec::new() };
        }
        let is_spent = |mode| {
            mode == Mode::Once
                || (planted!(PersistentFiresOnce) && mode == Mode::Stays(WatchMode::Persistent))
        };
        let spent = with(&is_spent);
        self.count -= spent.len();
        watching.retain(|_, mode| !is_spent(*mode));
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

#[cfg(test)]
mod tests {
    use super::*;

    const RECURSIVE: Mode = Mode::Stays(WatchMode::PersistentRecursive);

    #[test]
    fn a_recursive_watch_reaches_what_is_below_its_node_until_another_takes_its_place() {
        let mut table = WatchTable::default();
        table.add(1, "/", RECURSIVE);
        table.add(3, "/a/b", RECURSIVE);
        let told =
            |table: &mut WatchTable, path: &str, kind| Vec::from_iter(table.trigger(path, kind).sessions);
        assert_eq!(told(&mut table, "/a", EventKind::Created), [1]);
        assert_eq!(told(&mut table, "/a/b/c", EventKind::Created), [1, 3]);
        assert_eq!(told(&mut table, "/a/b", EventKind::Deleted), [1, 3]);
        assert!(told(&mut table, "/a/b", EventKind::ChildrenChanged).is_empty());
        table.add(3, "/a/b", Mode::Once);
        assert_eq!(told(&mut table, "/a/b/c", EventKind::Deleted), [1]);
        table.add(3, "/a/b", RECURSIVE);
        table.remove(1, "/");
        assert_eq!(told(&mut table, "/a/b/c", EventKind::DataChanged), [3]);
    }
}
