use docent_proto::{EventKind, WatchEvent};

/// A watch event and the session it is for.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) session: i64,
    pub(crate) told: WatchEvent,
    /// The transaction it tells of; −1 when a watch that was set again found that something had changed.
    pub(crate) zxid: i64,
}

impl Event {
    pub(crate) fn new(session: i64, kind: EventKind, path: &str, zxid: i64) -> Self {
        Self { session, told: WatchEvent { kind, path: path.to_owned() }, zxid }
    }

    /// An event of no certain transaction.
    pub(crate) fn late(session: i64, kind: EventKind, path: &str) -> Self {
        Self::new(session, kind, path, NO_ZXID)
    }
}

/// Number in the header of an event that tells no transaction.
pub(crate) const NO_ZXID: i64 = -1;
