use super::attachment::Attachment;
use crate::operation::Shared;
use crate::session::{PersistentSignal, PersistentWatch};

/// Persistent watch of a cache on its node and everything below, used instead of one-shot watches.
#[derive(Debug, Default)]
pub(super) struct SubtreeWatch(Option<PersistentWatch>);

impl SubtreeWatch {
    /// Chooses the kind of watches for the sync that is about to start. Requests a persistent watch if
    /// persistent watches are enabled and none exists. Returns true if a watch was requested, whether or not
    /// the request succeeded.
    pub(super) fn choose(&mut self, shared: &Shared, attachment: &Attachment, full: &str) -> bool {
        let is_added = shared.config.persistent_watches && self.0.is_none();
        if is_added {
            self.0 = attachment.generation.session.watch_below(full);
        }
        is_added
    }

    pub(super) fn is_set(&self) -> bool {
        self.0.is_some()
    }

    /// Waits for the next event; `None` if there is no watch. Cancel safe.
    pub(super) async fn next(&mut self) -> Option<PersistentSignal> {
        self.0.as_mut()?.next().await
    }

    /// Returns the next event if one has arrived.
    pub(super) fn take(&mut self) -> Option<PersistentSignal> {
        self.0.as_mut().and_then(PersistentWatch::take)
    }

    /// Removes the watch.
    pub(super) fn end(&mut self) {
        self.0 = None;
    }
}
