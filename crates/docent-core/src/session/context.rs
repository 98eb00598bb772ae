use super::ids::Ids;
use super::lease::Lease;
use super::{Session, SessionEnd};
use crate::time::Clock;
use std::fmt;
use std::sync::Arc;
use uuid::Uuid;

/// One session of a client, with its lease and the clock that measures it.
pub(crate) struct SessionContext {
    /// Label of the client.
    pub(crate) client: Arc<str>,
    /// Number of the session among the client's sessions: 1, 2, 3 …
    pub(crate) number: u64,
    pub(crate) session: Arc<dyn Session>,
    pub(crate) lease: Arc<Lease>,
    pub(crate) clock: Arc<dyn Clock>,
    /// Largest request in bytes that the servers accept.
    pub(crate) max_request: usize,
    pub(crate) ids: Ids,
}

impl SessionContext {
    pub(crate) fn ended(&self) -> Option<SessionEnd> {
        self.lease.ended()
    }

    /// Returns an id that no other session has and that this session has not used before.
    pub(crate) fn fresh_id(&self) -> Uuid {
        self.ids.fresh(self.session.id())
    }

    /// Returns the number of times that the link was lost.
    pub(crate) fn losses(&self) -> u64 {
        self.session.link().borrow().losses
    }
}

impl fmt::Debug for SessionContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionContext")
            .field("number", &self.number)
            .field("session", &self.session)
            .finish_non_exhaustive()
    }
}
