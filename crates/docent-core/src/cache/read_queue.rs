//! Reads that are due for the children of a folder, and their reasons. Pure: no I/O and no clock.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Version of a child: the transactions that created the node and that changed it last. A node that was
/// created again has the version numbers of its predecessor, so those prove nothing.
pub(super) type Version = (i64, i64);

/// Most children that are read one by one; more are read several to a request.
pub(super) const FEW: usize = 64;

/// Knowledge about each child, and the queue of reads.
///
/// Answers must be told in the order in which their requests were sent: then the last one told is the newest.
#[derive(Debug, Default)]
pub(super) struct ReadQueue {
    children: HashMap<Arc<str>, Child>,
    /// Children to read. May name some that are not [`ReadState::Unread`] any more.
    unread: VecDeque<Arc<str>>,
    /// Children that are known but not watched. May name some that are not [`ReadState::Unwatched`] any more.
    unwatched: VecDeque<Arc<str>>,
    /// Number of listings so far.
    listing: u64,
    /// Set when the next listing begins a sync.
    to_sync: bool,
    /// Number of children that the sync still waits for.
    due: usize,
}

#[derive(Debug, Default)]
struct Child {
    place: ReadState,
    /// Number of the last listing it was in.
    listing: u64,
    /// Set while the sync waits for it.
    due: bool,
    /// Set when it changed while it was being read.
    again: bool,
    watched: bool,
    known: Option<Version>,
    unreadable: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum ReadState {
    #[default]
    Resting,
    Unread,
    Unwatched,
    Asked,
}

/// A read of children.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Read {
    /// Of one child, which leaves a watch if it has none yet.
    One { name: Arc<str>, watch: bool },
    /// Of several children in one request, which leaves no watches.
    Several(Vec<Arc<str>>),
}

impl ReadQueue {
    /// Number of children.
    pub(super) fn len(&self) -> usize {
        self.children.len()
    }

    /// Begins a sync: known data does not count any more, and every child of the next listing is read.
    pub(super) fn begin_sync(&mut self) {
        self.to_sync = true;
        self.due = 0;
        self.children.values_mut().for_each(|child| child.due = false);
    }

    /// True once every child of the sync's listing has been read.
    pub(super) fn is_synced(&self) -> bool {
        !self.to_sync && self.due == 0
    }

    /// Takes note that the reads under way get no answer: they are sent again.
    pub(super) fn forget_asked(&mut self) {
        for (name, child) in &mut self.children {
            if child.place == ReadState::Asked {
                child.again = false;
                child.place = ReadState::Unread;
                self.unread.push_back(Arc::clone(name));
            }
        }
    }

    /// Takes note that all watches are gone.
    pub(super) fn forget_watches(&mut self) {
        for (name, child) in &mut self.children {
            child.watched = false;
            if child.place == ReadState::Resting && !child.unreadable {
                child.place = ReadState::Unwatched;
                self.unwatched.push_back(Arc::clone(name));
            }
        }
    }

    /// Takes a listing. Returns the children that were told of and are gone.
    pub(super) fn listed(&mut self, names: Vec<String>) -> Vec<Arc<str>> {
        self.listing += 1;
        let due = std::mem::take(&mut self.to_sync);
        let known = self.children.len();
        let met = names.into_iter().filter_map(|name| self.listed_one(name, due)).count();
        if met == known {
            return Vec::new();
        }
        let missing = self.children.iter().filter(|(_, child)| child.listing != self.listing);
        let missing: Vec<_> = missing.map(|(name, _)| Arc::clone(name)).collect();
        missing.into_iter().filter(|name| self.gone(name)).collect()
    }

    /// Takes one name of a listing. `None` for a new child.
    fn listed_one(&mut self, name: String, due: bool) -> Option<()> {
        self.due += usize::from(due);
        let Some(child) = self.children.get_mut(name.as_str()) else {
            let name = Arc::from(name);
            let child = Child { place: ReadState::Unread, due, listing: self.listing, ..Child::default() };
            self.unread.push_back(Arc::clone(&name));
            self.children.insert(name, child);
            return None;
        };
        child.listing = self.listing;
        if due {
            child.due = true;
            if matches!(child.place, ReadState::Resting | ReadState::Unwatched) {
                child.place = ReadState::Unread;
                self.unread.push_back(name.into());
            }
        }
        Some(())
    }

    /// The next read, of at most `most` children; below two they are read one by one.
    pub(super) fn next(&mut self, most: usize) -> Option<Read> {
        if self.unread.len() > FEW && most > 1 {
            let names: Vec<_> = std::iter::from_fn(|| self.next_in(ReadState::Unread)).take(most).collect();
            if !names.is_empty() {
                return Some(Read::Several(names));
            }
        }
        let name = self.next_in(ReadState::Unread).or_else(|| self.next_in(ReadState::Unwatched))?;
        let watch = self.children.get(&name).is_some_and(|child| !child.watched);
        Some(Read::One { name, watch })
    }

    fn next_in(&mut self, place: ReadState) -> Option<Arc<str>> {
        let queue = if place == ReadState::Unread { &mut self.unread } else { &mut self.unwatched };
        while let Some(name) = queue.pop_front() {
            if let Some(child) = self.children.get_mut(&name)
                && child.place == place
            {
                child.place = ReadState::Asked;
                return Some(name);
            }
        }
        None
    }

    /// Takes note that a child was read. True when that is news.
    pub(super) fn read(&mut self, name: &Arc<str>, version: Version) -> bool {
        let news =
            self.children.get(name).is_some_and(|child| child.unreadable || child.known != Some(version));
        self.answered(name, |child| {
            child.known = Some(version);
            child.unreadable = false;
        });
        news
    }

    /// Takes note that a child was read with a watch. True when it had none.
    pub(super) fn watched(&mut self, name: &str) -> bool {
        match self.children.get_mut(name) {
            Some(child) => !std::mem::replace(&mut child.watched, true),
            None => false,
        }
    }

    /// Takes note that a child cannot be read. True when that is news.
    pub(super) fn unreadable(&mut self, name: &Arc<str>) -> bool {
        let news = self.children.get(name).is_some_and(|child| !child.unreadable);
        self.answered(name, |child| child.unreadable = true);
        news
    }

    fn answered(&mut self, name: &Arc<str>, change: impl FnOnce(&mut Child)) {
        let Some(child) = self.children.get_mut(name) else { return };
        change(child);
        self.due -= usize::from(std::mem::take(&mut child.due));
        // A change was told while the read was under way: the reply may be older than that change.
        if std::mem::take(&mut child.again) {
            child.place = ReadState::Unread;
            self.unread.push_back(Arc::clone(name));
            return;
        }
        // A read of several children leaves no watches, so that these are read once more with one. A child
        // that cannot be read waits for the alarm that tries it again.
        child.place =
            if child.watched || child.unreadable { ReadState::Resting } else { ReadState::Unwatched };
        if child.place == ReadState::Unwatched {
            self.unwatched.push_back(Arc::clone(name));
        }
    }

    /// Takes note that a child is gone. True when it had been told of.
    pub(super) fn gone(&mut self, name: &str) -> bool {
        let Some(child) = self.children.remove(name) else { return false };
        self.due -= usize::from(child.due);
        child.known.is_some() || child.unreadable
    }

    /// Takes note that the watch of a child fired.
    pub(super) fn fired(&mut self, name: &Arc<str>) {
        if let Some(child) = self.children.get_mut(name) {
            child.watched = false;
            self.unread(name);
        }
    }

    /// Queues a child to be read, once more if it is being read.
    pub(super) fn unread(&mut self, name: &Arc<str>) {
        let Some(child) = self.children.get_mut(name) else { return };
        match child.place {
            ReadState::Unread => {}
            ReadState::Asked => child.again = true,
            ReadState::Resting | ReadState::Unwatched => {
                child.place = ReadState::Unread;
                self.unread.push_back(Arc::clone(name));
            }
        }
    }

    /// Takes note that a read has no answer: the child is read again.
    pub(super) fn unanswered(&mut self, name: &Arc<str>) {
        if let Some(child) = self.children.get_mut(name).filter(|child| child.place == ReadState::Asked) {
            child.again = false;
            child.place = ReadState::Unread;
            self.unread.push_back(Arc::clone(name));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn name(name: &str) -> Arc<str> {
        Arc::from(name)
    }

    /// ReadQueue after a sync, with children `names` as of transaction 1, all watched.
    fn synced(listed: &[&str]) -> ReadQueue {
        let mut work = ReadQueue::default();
        work.begin_sync();
        assert!(work.listed(names(listed)).is_empty());
        while let Some(read) = work.next(1) {
            let Read::One { name, watch: true } = read else { panic!("one by one, with a watch: {read:?}") };
            assert!(work.watched(&name));
            assert!(work.read(&name, (1, 1)));
        }
        assert!(work.is_synced());
        work
    }

    #[test]
    fn a_listing_tells_who_is_gone_and_has_the_new_ones_read() {
        let mut work = synced(&["a", "b", "c"]);
        let mut gone = work.listed(names(&["d", "b"]));
        gone.sort();
        assert_eq!(gone, [name("a"), name("c")]);
        assert_eq!(work.next(64), Some(Read::One { name: name("d"), watch: true }));
        assert_eq!(work.next(64), None, "what is known and watched is not read again");
        assert!(work.listed(names(&["b", "d"])).is_empty());
        assert_eq!(work.len(), 2);
    }

    #[test]
    fn who_was_never_read_is_not_told_to_be_gone() {
        let mut work = synced(&[]);
        work.listed(names(&["a"]));
        assert!(work.listed(names(&[])).is_empty());
        assert_eq!(work.next(64), None);
    }

    #[test]
    fn only_another_version_is_news() {
        let mut work = synced(&["a"]);
        assert!(!work.read(&name("a"), (1, 1)));
        assert!(work.read(&name("a"), (1, 2)), "changed");
        assert!(work.read(&name("a"), (3, 3)), "created again");
        assert!(!work.read(&name("x"), (1, 1)), "what is in no listing is no child");
    }

    #[test]
    fn many_are_read_together_and_watched_one_by_one_afterwards() {
        let all: Vec<String> = (0..200).map(|n| n.to_string()).collect();
        let mut work = ReadQueue::default();
        work.begin_sync();
        work.listed(all);
        let (mut together, mut alone) = (0, 0);
        while let Some(read) = work.next(50) {
            match read {
                Read::Several(names) => {
                    assert!(names.len() <= 50);
                    together += names.len();
                    names.iter().for_each(|name| assert!(work.read(name, (1, 1))));
                    assert_eq!(work.is_synced(), together == 200);
                }
                Read::One { name, watch } => {
                    assert!(watch);
                    alone += 1;
                    assert!(work.watched(&name));
                    work.read(&name, (1, 1));
                }
            }
        }
        // The last few are read and watched in one request.
        assert_eq!((together, alone), (150, 200));
    }

    #[test]
    fn a_sync_waits_for_what_its_own_listing_names_and_for_no_more() {
        let mut work = synced(&["a", "b"]);
        work.begin_sync();
        assert!(!work.is_synced());
        work.listed(names(&["a", "b"]));
        let (first, second) = (work.next(1), work.next(1));
        assert_eq!(first, Some(Read::One { name: name("a"), watch: false }), "it has a watch");
        work.listed(names(&["a", "b", "later"]));
        assert!(!work.read(&name("a"), (1, 1)));
        // A change meanwhile is read, but the sync does not wait for it.
        work.fired(&name("b"));
        assert!(matches!(second, Some(Read::One { .. })));
        work.read(&name("b"), (1, 1));
        assert!(work.is_synced());
        assert_eq!(work.next(1), Some(Read::One { name: name("later"), watch: true }));
        assert_eq!(work.next(1), Some(Read::One { name: name("b"), watch: true }));
    }

    #[test]
    fn a_child_that_vanishes_during_a_sync_does_not_hold_it_up() {
        let mut work = ReadQueue::default();
        work.begin_sync();
        work.listed(names(&["a", "b", "c"]));
        assert!(!work.gone("a"), "nobody was told of it");
        work.listed(names(&["b"]));
        work.next(1);
        assert!(work.unreadable(&name("b")));
        assert!(work.is_synced());
        work.begin_sync();
        work.listed(names(&["b"]));
        assert_eq!(work.next(1), Some(Read::One { name: name("b"), watch: true }));
        assert!(!work.unreadable(&name("b")), "that is no news");
        work.unread(&name("b"));
        work.next(1);
        assert!(work.read(&name("b"), (1, 1)), "it can be read again");
    }

    #[test]
    fn what_has_no_answer_is_asked_again() {
        let mut work = synced(&["a", "b"]);
        work.fired(&name("a"));
        assert!(work.next(1).is_some());
        work.unanswered(&name("a"));
        assert!(work.next(1).is_some());
        work.forget_asked();
        assert_eq!(work.next(1), Some(Read::One { name: name("a"), watch: true }));
        assert_eq!(work.next(1), None);
    }

    #[test]
    fn in_a_new_session_every_child_is_watched_anew() {
        let mut work = synced(&["a", "b"]);
        work.forget_watches();
        let mut watched = 0;
        while let Some(Read::One { name, watch }) = work.next(64) {
            assert!(watch && work.watched(&name));
            assert!(!work.watched(&name), "a second watch is not kept");
            assert!(!work.read(&name, (1, 1)));
            watched += 1;
        }
        assert_eq!(watched, 2);
    }
}
