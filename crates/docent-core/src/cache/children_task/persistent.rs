//! The persistent watch of a cache of children.
//!
//! It is set before the listing of a sync is asked for, so that its events and that listing leave no gap. The
//! events come in the order of the servers' and before replies that are newer; a reply that is older than an
//! event which was taken before it is told apart by the name it was asked for (`ReadQueue::joined`).

use super::asked::Ask;
use super::{ChildrenTask, Listing};
use crate::node::is_own_name;
use crate::session::{Outcome, PersistentNews};
use docent_proto::EventKind;
use tokio::time::Instant;

/// Node that an event is about.
enum Place<'a> {
    Folder,
    Child(&'a str),
    Elsewhere,
}

impl ChildrenTask {
    /// Chooses the kind of watches for the sync that begins.
    pub(super) fn choose_watches(&mut self) {
        if self.persistent.choose(&self.shared, &self.attachment, &self.full) {
            self.work.set_persistent(self.persistent.is_set());
        }
        if self.persistent.is_set() {
            self.folder_watch = None;
        }
    }

    /// Takes an answer, and before it all that was told before it.
    pub(super) fn answered_in_order(&mut self, ask: Ask, outcome: Outcome) {
        self.take_told();
        self.answered(ask, outcome);
    }

    /// Takes the news that are there already.
    pub(super) fn take_told(&mut self) {
        while let Some(news) = self.persistent.take() {
            self.told(news);
        }
    }

    pub(super) fn told(&mut self, news: PersistentNews) {
        match news {
            PersistentNews::Event(kind, path) => match self.place(&path) {
                Place::Folder => self.folder_told(kind),
                Place::Child(name) => self.child_told(kind, name),
                Place::Elsewhere => {}
            },
            PersistentNews::Withdrawn => self.withdrawn(),
            // It comes as `News`.
            PersistentNews::Ended(_) => self.persistent.end(),
        }
    }

    fn place<'a>(&self, path: &'a str) -> Place<'a> {
        let Some(below) = path.strip_prefix(self.full.as_str()) else { return Place::Elsewhere };
        let name = if self.full == "/" { Some(below) } else { below.strip_prefix('/') };
        match name {
            Some("") => Place::Folder,
            None if below.is_empty() => Place::Folder,
            Some(name) if !name.contains('/') && !is_own_name(name) => Place::Child(name),
            _ => Place::Elsewhere,
        }
    }

    fn folder_told(&mut self, kind: EventKind) {
        match kind {
            EventKind::Created | EventKind::Deleted => self.list_again(),
            EventKind::DataChanged | EventKind::ChildrenChanged => {}
        }
    }

    fn child_told(&mut self, kind: EventKind, name: &str) {
        match kind {
            EventKind::Created => {
                let under_way = matches!(self.listing, Listing::Asked { .. });
                self.work.joined(name, under_way);
            }
            // The transaction that deleted a child may have created it again, and tells so by another event.
            EventKind::DataChanged | EventKind::Deleted => self.work.unread(&name.into()),
            EventKind::ChildrenChanged => {}
        }
    }

    /// Takes note that the server has no persistent watches. What happens from now on is not told: all is
    /// read again, with one-shot watches.
    fn withdrawn(&mut self) {
        self.persistent.end();
        self.work.set_persistent(false);
        self.store.stale();
        if self.up {
            self.held = true;
            self.alarms.sync.get_or_insert_with(Instant::now);
        }
    }
}
