use std::collections::hash_map::RandomState;
use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher, Hasher};

/// Sessions with recursive watches, by watched node. For a change of a node, one walk along its path finds
/// the sessions that watch the node or an ancestor, no matter how long the watched paths are. Each node is
/// identified by a fingerprint of its path, which the walk extends from component to component.
#[derive(Debug, Clone, Default)]
pub(crate) struct RecursiveWatches {
    keys: [RandomState; 2],
    sessions: HashMap<Fingerprint, BTreeSet<i64>>,
}

/// A 128-bit hash of a path with secret random keys. In practice, no two paths have the same fingerprint, and
/// no client can search for such paths.
type Fingerprint = [u64; 2];

impl RecursiveWatches {
    pub(crate) fn add(&mut self, session: i64, path: &str) {
        if let Some(fingerprint) = self.fingerprint(path) {
            self.sessions.entry(fingerprint).or_default().insert(session);
        }
    }

    pub(crate) fn remove(&mut self, session: i64, path: &str) {
        let Some(fingerprint) = self.fingerprint(path) else { return };
        let Some(sessions) = self.sessions.get_mut(&fingerprint) else { return };
        sessions.remove(&session);
        if sessions.is_empty() {
            self.sessions.remove(&fingerprint);
        }
    }

    /// Iterates over the sessions with a watch on the node at `path` or an ancestor, starting at the root. A
    /// session with several watches occurs several times.
    pub(crate) fn at_and_above(&self, path: &str) -> impl Iterator<Item = i64> {
        self.sets(path).flatten().copied()
    }

    /// Returns whether a session has a watch on the node at `path` or an ancestor.
    pub(crate) fn reaches(&self, session: i64, path: &str) -> bool {
        self.sets(path).any(|sessions| sessions.contains(&session))
    }

    /// Iterates over the sessions that watch each node on the way to `path`.
    fn sets(&self, path: &str) -> impl Iterator<Item = &BTreeSet<i64>> {
        let is_any = !self.sessions.is_empty();
        let walk = is_any.then(|| self.fingerprints(path)).into_iter().flatten();
        walk.filter_map(|fingerprint| self.sessions.get(&fingerprint))
    }

    fn fingerprint(&self, path: &str) -> Option<Fingerprint> {
        // No node is below the empty path.
        if path.is_empty() { None } else { self.fingerprints(path).last() }
    }

    /// Iterates over the fingerprints of the root, each node on the way, and the node itself. Each byte is
    /// read once.
    fn fingerprints(&self, path: &str) -> impl Iterator<Item = Fingerprint> {
        let mut hashers = self.keys.each_ref().map(RandomState::build_hasher);
        components(path).map(move |component| {
            hashers.each_mut().map(|hasher| {
                hasher.write(component.as_bytes());
                hasher.write_u8(b'/');
                hasher.finish()
            })
        })
    }
}

/// Iterates over the components of a path. The first one is empty and stands for the root.
fn components(path: &str) -> impl Iterator<Item = &str> {
    let path = if path == "/" { "" } else { path };
    path.split('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watching(watches: &[(i64, &str)]) -> RecursiveWatches {
        let mut recursive = RecursiveWatches::default();
        watches.iter().for_each(|(session, path)| recursive.add(*session, path));
        recursive
    }

    fn triggered(recursive: &RecursiveWatches, path: &str) -> Vec<i64> {
        recursive.at_and_above(path).collect()
    }

    #[test]
    fn a_watch_reaches_its_node_and_what_is_below_it() {
        let mut recursive = watching(&[(1, "/"), (2, "/a"), (3, "/a/b"), (4, "/a")]);
        assert_eq!(triggered(&recursive, "/"), [1]);
        assert_eq!(triggered(&recursive, "/a"), [1, 2, 4]);
        assert_eq!(triggered(&recursive, "/ab"), [1]);
        assert_eq!(triggered(&recursive, "/a/b/c"), [1, 2, 4, 3]);
        assert_eq!(triggered(&recursive, "/a/bc"), [1, 2, 4]);
        recursive.remove(2, "/a");
        recursive.remove(1, "/");
        assert_eq!(triggered(&recursive, "/a/b"), [4, 3]);
        assert_eq!(
            [(3, "/a/b"), (3, "/b"), (4, "/a/b")].map(|(id, path)| recursive.reaches(id, path)),
            [true, false, true]
        );
        assert!(!recursive.reaches(2, "/a/b"));
    }

    #[test]
    fn a_path_that_no_node_has_reaches_nothing() {
        for odd in ["", "a", "a/b", "//", "/a/", "//a", "/a//b"] {
            let recursive = watching(&[(1, odd)]);
            for path in ["/", "/a", "/a/b", "/b/a"] {
                assert!(!recursive.reaches(1, path), "{odd:?} reaches {path}");
            }
        }
    }

    #[test]
    fn a_change_reads_its_own_path_once_however_many_nodes_above_it_are_watched() {
        const DEPTH: usize = 2_000;
        let path = "/a".repeat(DEPTH);
        let above = |depth: usize| &path[..2 * depth];
        let recursive = watching(&Vec::from_iter((1..=DEPTH).map(|depth| (7, above(depth)))));
        assert_eq!(recursive.fingerprints(&path).count(), DEPTH + 1, "one fingerprint for each node");
        let read: usize = components(&path).map(|component| component.len() + 1).sum();
        assert_eq!(read, path.len() + 1, "each byte is read once");
        assert_eq!(recursive.at_and_above(&path).count(), DEPTH);
    }

    #[test]
    fn removed_watches_leave_nothing_behind() {
        let mut recursive = watching(&[(1, "/a/b"), (2, "/a/b"), (1, "/")]);
        for (session, path) in [(1, "/a/b"), (2, "/a/b"), (1, "/"), (3, "/c")] {
            recursive.remove(session, path);
        }
        assert!(recursive.sessions.is_empty());
    }
}
