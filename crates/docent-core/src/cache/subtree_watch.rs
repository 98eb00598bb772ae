use super::attachment::Attachment;
use crate::operation::Shared;
use crate::session::{PersistentNews, PersistentWatch};
use std::mem;
use std::sync::Arc;

/// Persistent watch of a cache on its node and all below it, in place of one-shot ones, with the nodes that
/// the news being taken have deleted.
#[derive(Debug, Default)]
pub(super) struct SubtreeWatch {
    watch: Option<PersistentWatch>,
    /// Nodes that were deleted, and maybe created again, by news that are being taken.
    leaving: Vec<Arc<str>>,
}

impl SubtreeWatch {
    /// Chooses the kind of watches for the sync of the node at `full` that begins: asks for a persistent one
    /// where such are wanted and none is there. True when it was asked for, in vain or not.
    pub(super) fn choose(&mut self, shared: &Shared, attachment: &Attachment, full: &str) -> bool {
        let asks = shared.config.persistent_watches && self.watch.is_none();
        if asks {
            self.watch = attachment.generation.session.watch_below(full);
        }
        asks
    }

    pub(super) fn is_set(&self) -> bool {
        self.watch.is_some()
    }

    /// The next news; `None` where there is no watch. Cancel safe.
    pub(super) async fn next(&mut self) -> Option<PersistentNews> {
        self.watch.as_mut()?.next().await
    }

    /// The next news if there are any now.
    pub(super) fn take(&mut self) -> Option<PersistentNews> {
        self.watch.as_mut().and_then(PersistentWatch::take)
    }

    /// Removes the watch.
    pub(super) fn end(&mut self) {
        self.watch = None;
    }

    /// Takes note of a deletion. It is done once all news were taken: a node that one transaction deletes and
    /// creates is changed, and does not go.
    pub(super) fn left(&mut self, node: Arc<str>) {
        self.leaving.push(node);
    }

    /// Takes note of a creation.
    pub(super) fn joined(&mut self, node: &str) {
        self.leaving.retain(|leaving| **leaving != *node);
    }

    /// The nodes that were deleted and not created again.
    pub(super) fn take_leaving(&mut self) -> Vec<Arc<str>> {
        mem::take(&mut self.leaving)
    }
}
