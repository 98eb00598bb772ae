use super::attachment::Attachment;
use crate::operation::Shared;
use crate::session::{PersistentNews, PersistentWatch};

/// Persistent watch of a cache on its node and all below it, in place of one-shot ones.
#[derive(Debug, Default)]
pub(super) struct SubtreeWatch(Option<PersistentWatch>);

impl SubtreeWatch {
    /// Chooses the kind of watches for the sync of the node at `full` that begins: asks for a persistent one
    /// where such are wanted and none is there. True when it was asked for, in vain or not.
    pub(super) fn choose(&mut self, shared: &Shared, attachment: &Attachment, full: &str) -> bool {
        let asks = shared.config.persistent_watches && self.0.is_none();
        if asks {
            self.0 = attachment.generation.session.watch_below(full);
        }
        asks
    }

    pub(super) fn is_set(&self) -> bool {
        self.0.is_some()
    }

    /// The next news; `None` where there is no watch. Cancel safe.
    pub(super) async fn next(&mut self) -> Option<PersistentNews> {
        self.0.as_mut()?.next().await
    }

    /// The next news if there are any now.
    pub(super) fn take(&mut self) -> Option<PersistentNews> {
        self.0.as_mut().and_then(PersistentWatch::take)
    }

    /// Removes the watch.
    pub(super) fn end(&mut self) {
        self.0 = None;
    }
}
