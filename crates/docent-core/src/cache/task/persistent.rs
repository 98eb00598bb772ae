//! The persistent watch of a cache.
//!
//! The watch is set before the reads of a sync are sent, so that events and reads leave no gap. Events arrive
//! in the order of the servers' transactions, and before replies that are newer. A reply that is older than
//! an event which was processed before it is recognised by the key of its request ([`Nodes::created`]).
//!
//! [`Nodes::created`]: crate::cache::nodes::Nodes::created

use super::CacheTask;
use crate::cache::reads::{Read, ReadKind};
use crate::session::{Outcome, PersistentSignal, PersistentWatch};
use docent_proto::EventKind;
use std::sync::Arc;
use tokio::time::Instant;

impl CacheTask {
    /// Chooses the kind of watches for the sync that is about to start. Requests a persistent watch if
    /// persistent watches are enabled and none exists.
    pub(super) fn choose_watches(&mut self) {
        if self.shared.config.persistent_watches && self.persistent.is_none() {
            self.persistent = self.attachment.generation.session.watch_below(self.nodes.keys().full_root());
            self.nodes.set_persistent(self.persistent.is_some());
        }
    }

    /// Processes an answer, after all events that arrived before it.
    pub(super) fn answered_in_order(&mut self, read: Read, outcome: Outcome) {
        self.take_reported();
        self.answered(read, outcome);
    }

    /// Processes the events that have already arrived.
    pub(super) fn take_reported(&mut self) {
        while let Some(signal) = self.persistent.as_mut().and_then(PersistentWatch::take) {
            self.reported(signal);
        }
    }

    pub(super) fn reported(&mut self, signal: PersistentSignal) {
        match signal {
            PersistentSignal::Event(kind, full) => {
                if let Some(key) = self.nodes.keys().of_full(&full) {
                    self.node_reported(kind, &key);
                }
            }
            PersistentSignal::Withdrawn => self.withdrawn(),
            // The end of the session arrives as `SessionChange`.
            PersistentSignal::Ended(_) => self.persistent = None,
        }
    }

    fn node_reported(&mut self, kind: EventKind, key: &str) {
        let is_root = *key == **self.nodes.keys().root();
        if is_root && self.nodes.root_read_kind() == ReadKind::Names {
            // Only the existence of this node matters: its children are reported separately.
            if matches!(kind, EventKind::Created | EventKind::Deleted) {
                self.nodes.enqueue(&Arc::from(key), ReadKind::Names);
            }
            return;
        }
        match kind {
            EventKind::Created if is_root || self.options.selects(key) => self.nodes.created(key),
            // The transaction that deleted a node may have re-created it; another event reports that.
            EventKind::DataChanged | EventKind::Deleted => {
                self.nodes.enqueue(&Arc::from(key), ReadKind::Data);
            }
            EventKind::Created | EventKind::ChildrenChanged => {}
        }
    }

    /// Records that the server does not support persistent watches. Because it will not report later changes,
    /// everything is read again with one-shot watches.
    fn withdrawn(&mut self) {
        self.persistent = None;
        self.nodes.set_persistent(false);
        self.store.stale();
        if self.up {
            self.held = true;
            self.sync_at.get_or_insert_with(Instant::now);
        }
    }
}
