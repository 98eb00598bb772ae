//! The persistent watch of a cache of a tree, as that of a cache of children.

use super::{Ask, TreeTask};
use crate::cache::tree_nodes::Look;
use crate::session::{Outcome, PersistentNews};
use docent_proto::EventKind;
use std::sync::Arc;
use tokio::time::Instant;

impl TreeTask {
    /// Chooses the kind of watches for the sync that begins.
    pub(super) fn choose_watches(&mut self) {
        let full = self.shared.namespace.join(&self.root);
        if self.persistent.choose(&self.shared, &self.attachment, &full) {
            self.nodes.set_persistent(self.persistent.is_set());
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
            PersistentNews::Event(kind, full) => {
                let path: Arc<str> = self.shared.namespace.relative(&*full).into();
                self.node_told(kind, &path);
            }
            PersistentNews::Withdrawn => self.withdrawn(),
            // It comes as `News`.
            PersistentNews::Ended(_) => self.persistent.end(),
        }
    }

    fn node_told(&mut self, kind: EventKind, path: &Arc<str>) {
        match kind {
            EventKind::Created if *path == self.root || self.options.selects(path) => {
                self.nodes.joined(path);
            }
            // The transaction that deleted a node may have created it again, and tells so by another event.
            EventKind::DataChanged | EventKind::Deleted => self.nodes.want(path, Look::Data),
            EventKind::Created | EventKind::ChildrenChanged => {}
        }
    }

    /// Takes note that the server has no persistent watches. What happens from now on is not told: all is
    /// read again, with one-shot watches.
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
