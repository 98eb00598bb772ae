use docent_proto::{EventKind, WatchEvent};
use std::sync::Arc;

/// A watch event, and the session that receives it.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) session: i64,
    pub(crate) kind: EventKind,
    /// Shared by the events of all sessions that the change concerns.
    pub(crate) path: Arc<str>,
    /// The transaction that caused the event; −1 if a re-registered watch found that something had changed.
    pub(crate) zxid: i64,
}

impl Event {
    pub(crate) fn new(session: i64, kind: EventKind, path: impl Into<Arc<str>>, zxid: i64) -> Self {
        Self { session, kind, path: path.into(), zxid }
    }

    /// Creates an event without a known transaction.
    pub(crate) fn missed(session: i64, kind: EventKind, path: &str) -> Self {
        Self::new(session, kind, path, NO_ZXID)
    }

    /// Returns the event in the form in which it is sent to its session.
    pub(crate) fn to_watch_event(&self) -> WatchEvent {
        WatchEvent { kind: self.kind, path: self.path.to_string() }
    }
}

/// Transaction number in the header of an event without a known transaction.
pub(crate) const NO_ZXID: i64 = -1;
