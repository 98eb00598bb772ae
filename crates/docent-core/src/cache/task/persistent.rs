//! The persistent watch of a cache.
//!
//! It is set before the reads of a sync are sent, so that its events and those reads leave no gap. The events
//! come in the order of the servers' transactions and before replies that are newer. A reply that is older
//! than an event which was taken before it is recognised by the key it was asked for ([`Nodes::created`]).
//!
//! [`Nodes::created`]: crate::cache::nodes::Nodes::created

use super::CacheTask;
use super::asked::Ask;
use crate::cache::reads::Look;
use crate::session::{Outcome, PersistentNews};
use docent_proto::EventKind;
use std::sync::Arc;
use tokio::time::Instant;

impl CacheTask {
    /// Chooses the kind of watches for the sync that begins.
    pub(super) fn choose_watches(&mut self) {
        if self.persistent.choose(&self.shared, &self.attachment, self.nodes.keys().full_root()) {
            self.nodes.set_persistent(self.persistent.is_set());
        }
    }

    /// Takes an answer, and before it all events that arrived before it.
    pub(super) fn answered_in_order(&mut self, ask: Ask, outcome: Outcome) {
        self.take_reported();
        self.answered(ask, outcome);
    }

    /// Takes the events that have arrived already.
    pub(super) fn take_reported(&mut self) {
        while let Some(news) = self.persistent.take() {
            self.reported(news);
        }
    }

    pub(super) fn reported(&mut self, news: PersistentNews) {
        match news {
            PersistentNews::Event(kind, full) => {
                if let Some(key) = self.nodes.keys().of_full(&full) {
                    self.node_reported(kind, &key);
                }
            }
            PersistentNews::Withdrawn => self.withdrawn(),
            // It comes as `News`.
            PersistentNews::Ended(_) => self.persistent.end(),
        }
    }

    fn node_reported(&mut self, kind: EventKind, key: &str) {
        let is_root = *key == **self.nodes.keys().root();
        if is_root && self.nodes.root_look() == Look::Names {
            // Only its existence matters: its children are reported for themselves.
            if matches!(kind, EventKind::Created | EventKind::Deleted) {
                self.nodes.want(&Arc::from(key), Look::Names);
            }
            return;
        }
        match kind {
            EventKind::Created if is_root || self.options.selects(key) => self.nodes.created(key),
            // The transaction that deleted a node may have created it again, and another event reports that.
            EventKind::DataChanged | EventKind::Deleted => self.nodes.want(&Arc::from(key), Look::Data),
            EventKind::Created | EventKind::ChildrenChanged => {}
        }
    }

    /// Records that the server has no persistent watches. Later changes are not reported: all is read again,
    /// with one-shot watches.
    fn withdrawn(&mut self) {
        self.persistent.end();
        self.nodes.set_persistent(false);
        self.store.stale();
        if self.up {
            self.held = true;
            self.sync_at.get_or_insert_with(Instant::now);
        }
    }
}
