use super::{Registration, SessionEnd};
use docent_proto::EventKind;
use std::sync::Arc;
use tokio::sync::mpsc;

/// A persistent watch on a node and everything below it. The session re-creates it on each new link; changes
/// made while there was no link are not reported. Dropping the value removes the watch.
#[derive(Debug)]
pub(crate) struct PersistentWatch {
    signals: mpsc::UnboundedReceiver<PersistentSignal>,
    registration: Registration,
}

/// Notification from a persistent watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PersistentSignal {
    /// A node at or below the watched node was created or deleted, or its data was set.
    Event(EventKind, Arc<str>),
    /// The server of the link does not support persistent watches. No further notifications follow.
    Withdrawn,
    Ended(SessionEnd),
}

impl PersistentWatch {
    pub(super) fn new(
        signals: mpsc::UnboundedReceiver<PersistentSignal>,
        registration: Registration,
    ) -> Self {
        Self { signals, registration }
    }

    /// Returns the next notification, in the server's order, or `None` after the last. An event that arrived
    /// before the reply to a request is available before that reply. Cancel safe.
    pub(crate) async fn next(&mut self) -> Option<PersistentSignal> {
        self.signals.recv().await
    }

    /// Returns the next notification if one is available now.
    pub(crate) fn take(&mut self) -> Option<PersistentSignal> {
        self.signals.try_recv().ok()
    }
}

impl Drop for PersistentWatch {
    fn drop(&mut self) {
        let Registration { id, path, kind, session } = &self.registration;
        session.unregister(*id, path, *kind);
    }
}
