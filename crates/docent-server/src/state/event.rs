use docent_proto::{EventKind, WatchEvent};
use std::sync::Arc;

/// A watch event and the session it is for.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) session: i64,
    pub(crate) kind: EventKind,
    /// Shared by the events of all sessions that a change concerns.
    pub(crate) path: Arc<str>,
    /// The transaction it tells of; −1 when a watch that was set again found that something had changed.
    pub(crate) zxid: i64,
}

impl Event {
    pub(crate) fn new(session: i64, kind: EventKind, path: impl Into<Arc<str>>, zxid: i64) -> Self {
        Self { session, kind, path: path.into(), zxid }
    }

    /// An event of no certain transaction.
    pub(crate) fn late(session: i64, kind: EventKind, path: &str) -> Self {
        Self::new(session, kind, path, NO_ZXID)
    }

    /// The event as its session is told of it.
    pub(crate) fn told(&self) -> WatchEvent {
        WatchEvent { kind: self.kind, path: self.path.to_string() }
    }
}

/// Number in the header of an event that tells no transaction.
pub(crate) const NO_ZXID: i64 = -1;
