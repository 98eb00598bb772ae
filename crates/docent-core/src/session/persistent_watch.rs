use super::{Registration, SessionEnd};
use docent_proto::EventKind;
use std::sync::Arc;
use tokio::sync::mpsc;

/// A persistent watch on a node and all below it. The session sets it again on each new link; changes while
/// there was no link are not told. Dropping it removes it.
#[derive(Debug)]
pub(crate) struct PersistentWatch {
    news: mpsc::UnboundedReceiver<PersistentNews>,
    registration: Registration,
}

/// News of a persistent watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PersistentNews {
    /// A node at or below the watched one was created or deleted, or its data was set.
    Event(EventKind, Arc<str>),
    /// The server of the link does not have such watches. Nothing more is told.
    Withdrawn,
    Ended(SessionEnd),
}

impl PersistentWatch {
    pub(super) fn new(news: mpsc::UnboundedReceiver<PersistentNews>, registration: Registration) -> Self {
        Self { news, registration }
    }

    /// The next news, in the order of the servers'. An event that came before the reply to a request is there
    /// before that reply is. `None` after the last. Cancel safe.
    pub(crate) async fn next(&mut self) -> Option<PersistentNews> {
        self.news.recv().await
    }

    /// The next news if there are any now.
    pub(crate) fn take(&mut self) -> Option<PersistentNews> {
        self.news.try_recv().ok()
    }
}

impl Drop for PersistentWatch {
    fn drop(&mut self) {
        let Registration { id, path, kind, session } = &self.registration;
        session.unregister(*id, path, *kind);
    }
}
