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
    /// Number of recursive watches by the length of their path: where a path is cut to find those above it.
    recursive: BTreeMap<usize, usize>,
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
        self.count_recursive(path, old, Some(mode));
    }

    /// Removes a watch; false when there was none.
    pub(crate) fn remove(&mut self, session: i64, path: &str) -> bool {
        let Some(sessions) = self.by_path.get_mut(path) else { return false };
        let old = sessions.remove(&session);
        if sessions.is_empty() {
            self.by_path.remove(path);
        }
        self.count -= usize::from(old.is_some());
        self.count_recursive(path, old, None);
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
        if kind != EventKind::ChildrenChanged {
            self.trigger_above(path, &mut triggered.sessions);
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
        let spent = with(&|mode| mode == Mode::Once);
        self.count -= spent.len();
        watching.retain(|_, mode| *mode != Mode::Once);
        if watching.is_empty() {
            self.by_path.remove(path);
        }
        Triggered { sessions, spent }
    }

    /// Adds the sessions with a recursive watch on a node above `path`.
    fn trigger_above(&self, path: &str, sessions: &mut BTreeSet<i64>) {
        for length in self.recursive.range(..path.len()).map(|(length, _)| *length) {
            let Some(above) = above(path, length) else { continue };
            let watching = self.by_path.get(above).into_iter().flatten();
            sessions.extend(watching.filter(|(_, mode)| mode.is_recursive()).map(|(session, _)| *session));
        }
    }

    fn count_recursive(&mut self, path: &str, old: Option<Mode>, new: Option<Mode>) {
        let is_recursive = |mode: Option<Mode>| mode.is_some_and(Mode::is_recursive);
        match (is_recursive(old), is_recursive(new)) {
            (false, true) => *self.recursive.entry(path.len()).or_default() += 1,
            (true, false) => {
                if let Some(count) = self.recursive.get_mut(&path.len()) {
                    *count -= 1;
                    if *count == 0 {
                        self.recursive.remove(&path.len());
                    }
                }
            }
            _ => {}
        }
    }
}

/// The node above `path` whose own path has so many bytes, if there is one.
fn above(path: &str, length: usize) -> Option<&str> {
    let is_cut = length == 1 || path.as_bytes().get(length) == Some(&b'/');
    path.get(..length).filter(|above| is_cut && above.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECURSIVE: Mode = Mode::Stays(WatchMode::PersistentRecursive);

    #[test]
    fn a_recursive_watch_reaches_what_is_below_its_node_and_nothing_beside_it() {
        let mut table = WatchTable::default();
        table.add(1, "/", RECURSIVE);
        table.add(2, "/a", RECURSIVE);
        table.add(3, "/a/b", RECURSIVE);
        let mut told = |path: &str| Vec::from_iter(table.trigger(path, EventKind::Created).sessions);
        assert_eq!(told("/"), [1]);
        assert_eq!(told("/a"), [1, 2]);
        assert_eq!(told("/ab"), [1]);
        assert_eq!(told("/a/b/c"), [1, 2, 3]);
        assert_eq!(told("/a/bc"), [1, 2]);
        table.remove(2, "/a");
        table.add(3, "/a/b", Mode::Once);
        assert_eq!(Vec::from_iter(table.trigger("/a/b/c", EventKind::Deleted).sessions), [1]);
        assert_eq!(table.recursive, BTreeMap::from([(1, 1)]));
    }
}
