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
        // All children were in it, and will hardly be again.
        queue.shrink_to(FEW);
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
mod tests;
