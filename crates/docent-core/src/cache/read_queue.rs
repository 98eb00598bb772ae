//! Reads that are due for the children of a folder, and their reasons. Pure: no I/O and no clock.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Version of a child: the transactions that created the node and that changed it last. A node that was
/// created again has the version numbers of its predecessor, so those prove nothing.
pub(super) type Version = (i64, i64);

/// Most children that are read one by one; more are read several to a request.
pub(super) const FEW: usize = 64;

/// Most children that one request sets watches on.
const TOGETHER: usize = 512;

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
    /// Children in the order of the last listing; empty where that is not all of them, or some have gone.
    order: Vec<Arc<str>>,
    /// Set when the next listing begins a sync.
    to_sync: bool,
    /// Number of children that the sync still waits for.
    due: usize,
    /// Transaction that the answers which are taken now are as of; 0 where it is not known.
    as_of: i64,
    /// Set while a persistent watch tells of every child, so that none needs a watch of its own.
    persistent: bool,
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
    /// Transaction that what is known is as of.
    as_of: i64,
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
    /// Of none: one request sets watches on several children, which were read as of `since` or later. The
    /// watch of a child that changed after that fires at once.
    Watch { names: Vec<Arc<str>>, since: i64 },
}

impl ReadQueue {
    /// Number of children.
    pub(super) fn len(&self) -> usize {
        self.children.len()
    }

    /// Takes note whether a persistent watch tells of every child from now on. A sync is due after a change.
    pub(super) fn set_persistent(&mut self, persistent: bool) {
        self.persistent = persistent;
        if persistent {
            for name in std::mem::take(&mut self.unwatched) {
                if let Some(child) =
                    self.children.get_mut(&name).filter(|it| it.place == ReadState::Unwatched)
                {
                    child.place = ReadState::Resting;
                }
            }
        }
    }

    /// True for the name of a child as it was asked for, and false where the child was gone since, also if
    /// there is another one of that name: the answer to that request says nothing about it.
    pub(super) fn is_current(&self, name: &Arc<str>) -> bool {
        self.children.get_key_value(name).is_some_and(|(key, _)| Arc::ptr_eq(key, name))
    }

    /// Takes note that a persistent watch told of the creation of a child. A listing that is `under_way` may
    /// be older than that, and not name it.
    pub(super) fn joined(&mut self, name: &str, under_way: bool) {
        let mut child = match self.children.remove_entry(name) {
            None => Child::default(),
            // The read under way may have found the node before this one, or none. As the name is another
            // one then its answer is not taken.
            Some((_, child)) if child.place == ReadState::Asked => child,
            Some((name, mut child)) => {
                if under_way {
                    child.listing = self.listing + 1;
                }
                // The next listing may have no place for it.
                self.order.clear();
                self.children.insert(Arc::clone(&name), child);
                return self.unread(&name);
            }
        };
        let name: Arc<str> = Arc::from(name);
        (child.place, child.again) = (ReadState::Unread, false);
        // It has no place in the last listing.
        self.order.clear();
        if under_way {
            child.listing = self.listing + 1;
        }
        self.unread.push_back(Arc::clone(&name));
        self.children.insert(name, child);
    }

    /// Begins a sync: known data does not count any more, and every child of the next listing is read.
    pub(super) fn begin_sync(&mut self) {
        self.to_sync = true;
        self.due = 0;
        self.children.values_mut().for_each(|child| child.due = false);
    }

    /// Ends a sync whose listing is refused: what is known is watched until the next one.
    pub(super) fn give_up_sync(&mut self) {
        self.to_sync = false;
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

    /// Takes note that the next listing is newer than all that was told by now.
    pub(super) fn forget_told(&mut self) {
        self.children.values_mut().for_each(|child| child.listing = self.listing);
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
    ///
    /// Servers list children in the same order as before, mostly: only names between the first and the last
    /// one that is not in its place are looked up.
    pub(super) fn listed(&mut self, mut names: Vec<String>) -> Vec<Arc<str>> {
        self.listing += 1;
        let due = std::mem::take(&mut self.to_sync);
        let whole = due || self.order.is_empty();
        let (start, end) = if whole { (0, 0) } else { unmoved(&self.order, &names) };
        let until = names.len() - end;
        let listed: Vec<_> = names.drain(start..until).map(|name| self.listed_one(name, due)).collect();
        let is_missing = |child: &Child| child.listing != self.listing;
        let missing: Vec<_> = if whole {
            self.order = listed;
            let missing = self.children.iter().filter(|(_, child)| is_missing(child));
            missing.map(|(name, _)| Arc::clone(name)).collect()
        } else {
            let until = self.order.len() - end;
            let moved = self.order.splice(start..until, listed);
            moved.filter(|name| self.children.get(name).is_some_and(is_missing)).collect()
        };
        let gone = missing.into_iter().filter(|name| self.forget(name)).collect();
        if self.order.len() != self.children.len() {
            // Some are newer than this listing, and have no place in it.
            self.order.clear();
        }
        gone
    }

    /// Takes one name of a listing.
    fn listed_one(&mut self, name: String, due: bool) -> Arc<str> {
        self.due += usize::from(due);
        let name: Arc<str> = match self.children.get_key_value(&*name) {
            Some((known, _)) => Arc::clone(known),
            None => name.into(),
        };
        let listing = self.listing;
        let child = self.children.entry(Arc::clone(&name)).or_insert_with(|| {
            self.unread.push_back(Arc::clone(&name));
            Child { place: ReadState::Unread, ..Child::default() }
        });
        child.listing = listing;
        if due {
            child.due = true;
            if matches!(child.place, ReadState::Resting | ReadState::Unwatched) {
                child.place = ReadState::Unread;
                self.unread.push_back(Arc::clone(&name));
            }
        }
        name
    }

    /// The next read, of at most `most` children; below two they are read one by one.
    pub(super) fn next(&mut self, most: usize) -> Option<Read> {
        if self.unread.len() > FEW && most > 1 {
            let names: Vec<_> = std::iter::from_fn(|| self.next_in(ReadState::Unread)).take(most).collect();
            if !names.is_empty() {
                return Some(Read::Several(names));
            }
        }
        let unread = self.next_in(ReadState::Unread);
        if unread.is_none() {
            // A sync reads its children first: a watch alone does not tell what they are.
            if !self.is_synced() {
                return None;
            }
            if let Some(watch) = self.next_watch() {
                return Some(watch);
            }
        }
        let name = unread.or_else(|| self.next_in(ReadState::Unwatched))?;
        let watch = !self.persistent && self.children.get(&name).is_some_and(|child| !child.watched);
        Some(Read::One { name, watch })
    }

    /// The next children that are known and not watched. `None` where it is not known as of when they are.
    fn next_watch(&mut self) -> Option<Read> {
        let (mut names, mut since) = (Vec::new(), i64::MAX);
        while names.len() < TOGETHER
            && let Some(name) = self.unwatched.front()
            && let Some(child) = self.children.get(name).filter(|child| child.as_of > 0)
            && child.place == ReadState::Unwatched
        {
            since = since.min(child.as_of);
            names.extend(self.next_in(ReadState::Unwatched));
        }
        (!names.is_empty()).then_some(Read::Watch { names, since })
    }

    /// Takes note that a child was asked for a watch and has none.
    pub(super) fn unwatched(&mut self, name: &Arc<str>) {
        if let Some(child) = self.children.get_mut(name).filter(|child| child.place == ReadState::Asked) {
            // It is read with a watch.
            child.as_of = 0;
            if child.due {
                return self.unanswered(name);
            }
            child.place = ReadState::Unwatched;
            self.unwatched.push_back(Arc::clone(name));
        }
    }

    /// Takes note that a child which is known has got a watch. True when it had none.
    pub(super) fn armed(&mut self, name: &Arc<str>) -> bool {
        let news = self.watched(name);
        if self.children.get(name).is_some_and(|child| child.due) {
            // A sync began since, which waits for a read.
            self.unanswered(name);
        } else {
            self.answered(name, |_| ());
        }
        news
    }

    /// Says which transaction the answers that follow are as of.
    pub(super) fn as_of(&mut self, zxid: i64) {
        self.as_of = zxid;
    }

    fn next_in(&mut self, place: ReadState) -> Option<Arc<str>> {
        let queue = if place == ReadState::Unread { &mut self.unread } else { &mut self.unwatched };
        while let Some(name) = queue.pop_front() {
            let Some((key, _)) = self.children.get_key_value(&name) else { continue };
            let key = Arc::clone(key);
            if let Some(child) = self.children.get_mut(&name)
                && child.place == place
            {
                child.place = ReadState::Asked;
                return Some(key);
            }
        }
        None
    }

    /// Takes note that a child was read. True when that is news.
    pub(super) fn read(&mut self, name: &Arc<str>, version: Version) -> bool {
        let news =
            self.children.get(name).is_some_and(|child| child.unreadable || child.known != Some(version));
        let as_of = self.as_of;
        self.answered(name, |child| {
            (child.known, child.as_of) = (Some(version), as_of);
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
        let rests = self.persistent || child.watched || child.unreadable;
        child.place = if rests { ReadState::Resting } else { ReadState::Unwatched };
        if child.place == ReadState::Unwatched {
            self.unwatched.push_back(Arc::clone(name));
        }
    }

    /// Takes note that a child is gone. True when it had been told of.
    pub(super) fn gone(&mut self, name: &str) -> bool {
        if self.children.contains_key(name) {
            // The next listing may have it again, in its old place.
            self.order.clear();
        }
        self.forget(name)
    }

    fn forget(&mut self, name: &str) -> bool {
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

/// Number of names at the start and at the end of two lists that are the same in both.
fn unmoved(before: &[Arc<str>], names: &[String]) -> (usize, usize) {
    let is_same = |(before, name): &(&Arc<str>, &String)| ***before == ***name;
    let start = before.iter().zip(names).take_while(is_same).count();
    let rest = before[start..].iter().rev().zip(names[start..].iter().rev());
    (start, rest.take_while(is_same).count())
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
    fn a_listing_in_another_order_tells_nothing_and_one_child_more_or_less_is_found_in_its_place() {
        let mut work = synced(&["a", "b", "c", "d"]);
        assert!(work.listed(names(&["d", "b", "a", "c"])).is_empty());
        assert_eq!(work.next(64), None);
        assert_eq!(work.listed(names(&["d", "b", "c"])), [name("a")]);
        assert_eq!(work.listed(names(&["d", "b"])), [name("c")]);
        assert!(work.listed(names(&["d", "x", "b"])).is_empty());
        assert_eq!(work.next(64), Some(Read::One { name: name("x"), watch: true }));
        assert_eq!((work.next(64), work.len()), (None, 3));
        // Twice the same name, at the start and at the end.
        assert_eq!(unmoved(&[name("d"), name("d")], &names(&["d"])), (1, 0));
        assert_eq!(unmoved(&[name("d")], &names(&["d", "d"])), (1, 0));
    }

    #[test]
    fn who_was_found_to_be_gone_and_is_listed_again_in_its_place_is_read() {
        let mut work = synced(&["a", "b", "c"]);
        assert!(work.gone("b"));
        assert!(work.listed(names(&["a", "b", "c"])).is_empty());
        assert_eq!(work.next(64), Some(Read::One { name: name("b"), watch: true }));
        assert_eq!(work.next(64), None);
    }

    proptest::proptest! {
        #[test]
        fn a_listing_is_taken_as_by_a_look_at_every_name(
            listings in proptest::collection::vec(
                (proptest::collection::vec(0..12_u8, 0..12), proptest::option::of(0..12_u8)), 1..12),
        ) {
            let mut work = ReadQueue::default();
            work.begin_sync();
            let mut known = std::collections::BTreeSet::new();
            for (listing, gone) in listings {
                let listing: std::collections::BTreeSet<_> = listing.iter().map(u8::to_string).collect();
                let mut found: Vec<_> = work.listed(listing.iter().cloned().collect());
                found.sort();
                let missing: Vec<_> = known.difference(&listing).map(|gone| name(gone)).collect();
                proptest::prop_assert_eq!(found, missing);
                let mut read = std::collections::BTreeSet::new();
                while let Some(Read::One { name, .. }) = work.next(1) {
                    work.watched(&name);
                    work.read(&name, (1, 1));
                    read.insert(name.to_string());
                }
                let new: std::collections::BTreeSet<_> = listing.difference(&known).cloned().collect();
                proptest::prop_assert!(read.is_superset(&new) && read.is_subset(&listing), "{:?}", read);
                known = listing;
                if let Some(gone) = gone.map(|gone| gone.to_string()) {
                    proptest::prop_assert_eq!(work.gone(&gone), known.remove(&gone));
                }
            }
        }
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
                Read::Watch { .. } => panic!("it is not known as of when they are"),
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
    fn many_that_are_known_as_of_a_transaction_get_their_watches_by_few_requests() {
        let mut work = ReadQueue::default();
        work.begin_sync();
        work.listed((0..2_000).map(|n| n.to_string()).collect());
        let (mut zxid, mut armed, mut requests) = (7, 0, 0);
        while let Some(read) = work.next(50) {
            match read {
                Read::Several(names) => {
                    work.as_of(zxid);
                    zxid += 1;
                    names.iter().for_each(|name| assert!(work.read(name, (1, 1))));
                }
                Read::One { name, .. } => {
                    assert!(work.watched(&name) && work.read(&name, (1, 1)));
                }
                Read::Watch { names, since } => {
                    assert!(since >= 7, "no child is older than its own read");
                    requests += 1;
                    armed += names.len();
                    names.iter().for_each(|name| assert!(work.armed(name)));
                }
            }
        }
        assert_eq!((armed, requests), (1_950, 4));
    }

    #[test]
    fn a_watch_that_could_not_be_set_is_left_by_a_read() {
        let mut work = ReadQueue::default();
        work.begin_sync();
        work.listed((0..70).map(|n| n.to_string()).collect());
        work.as_of(7);
        let Some(Read::Several(names)) = work.next(10) else { panic!("many are read together") };
        names.iter().for_each(|name| assert!(work.read(name, (1, 1))));
        while let Some(Read::One { name, .. }) = work.next(1) {
            assert!(work.watched(&name) && work.read(&name, (1, 1)));
        }
        names.iter().for_each(|name| work.unwatched(name));
        assert!(matches!(work.next(10), Some(Read::One { watch: true, .. })));
    }

    #[test]
    fn a_child_told_while_the_folder_is_listed_stays_though_the_listing_is_older() {
        let mut work = synced(&["a"]);
        work.set_persistent(true);
        work.joined("b", true);
        assert!(work.listed(names(&["a"])).is_empty());
        let Some(Read::One { name: b, watch: false }) = work.next(1) else { panic!("it is read") };
        // It is deleted and created again: the answer to that read is of the node before.
        work.joined("b", false);
        assert!(!work.is_current(&b));
        let Some(Read::One { name: b, .. }) = work.next(1) else { panic!("it is read anew") };
        assert!(work.is_current(&b) && work.read(&b, (5, 5)));
        assert_eq!(work.listed(names(&["a"])), [name("b")], "a later listing counts");
    }

    #[test]
    fn a_known_child_created_again_while_the_folder_is_listed_stays_though_the_listing_is_older() {
        let mut work = synced(&["a", "b"]);
        work.set_persistent(true);
        work.begin_sync();
        work.joined("b", true);
        assert!(work.listed(names(&["a"])).is_empty());
        assert_eq!(work.len(), 2);
        assert_eq!(work.listed(names(&["a"])), [name("b")], "a later listing counts");
    }

    #[test]
    fn a_known_child_created_again_is_kept_by_one_listing_only() {
        let mut work = synced(&["a", "b"]);
        work.set_persistent(true);
        work.joined("b", true);
        assert!(work.listed(names(&["a"])).is_empty());
        assert_eq!(work.listed(names(&["a"])), [name("b")]);
    }

    /// ReadQueue in a new session, with a child `a` that is known as of transaction 7 and not watched.
    fn in_a_new_session() -> ReadQueue {
        let mut work = synced(&["a"]);
        work.as_of(7);
        assert!(!work.read(&name("a"), (1, 1)));
        work.forget_watches();
        work
    }

    #[test]
    fn a_sync_reads_what_it_finds_without_a_watch_and_arms_nothing_before_its_end() {
        let mut work = in_a_new_session();
        work.begin_sync();
        assert_eq!(work.next(64), None, "the listing comes first");
        work.listed(names(&["a"]));
        assert_eq!(work.next(64), Some(Read::One { name: name("a"), watch: true }));
        assert!(!work.is_synced());
        assert!(work.read(&name("a"), (1, 8)));
        assert!(work.is_synced());
        let armed = Read::Watch { names: vec![name("a")], since: 7 };
        assert_eq!(work.next(64), Some(armed), "the sync is over");
    }

    #[test]
    fn what_is_known_is_armed_while_the_folder_cannot_be_listed() {
        let mut work = in_a_new_session();
        work.begin_sync();
        work.give_up_sync();
        assert!(matches!(work.next(64), Some(Read::Watch { since: 7, .. })));
    }

    #[test]
    fn a_sync_reads_what_was_being_armed_when_it_began() {
        for is_armed in [true, false] {
            let mut work = in_a_new_session();
            assert!(matches!(work.next(64), Some(Read::Watch { since: 7, .. })));
            work.begin_sync();
            work.listed(names(&["a"]));
            if is_armed {
                assert!(work.armed(&name("a")));
            } else {
                work.unwatched(&name("a"));
            }
            assert!(!work.is_synced(), "it has not been read");
            assert_eq!(work.next(64), Some(Read::One { name: name("a"), watch: !is_armed }));
            assert!(work.read(&name("a"), (1, 8)));
            assert!(work.is_synced());
        }
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
