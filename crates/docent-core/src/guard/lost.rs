use crate::error::{Error, ErrorKind};
use std::fmt;

/// Reason why a guard was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LostReason {
    /// No write was acknowledged in time, and the servers may expire the session soon.
    LeaseExpired,
    /// The servers expired the session.
    SessionExpired,
    /// The client gave up the session, because no server was reachable for too long or
    /// [a node could not be deleted](crate::ClientBuilder::end_session_on_refused_delete).
    SessionAbandoned,
    /// The servers refused the client's credentials when it reconnected.
    AuthFailed,
    /// Another client deleted the guard's node.
    NodeDeleted,
    /// The client was closed, or its task stopped because it panicked or its runtime was shut down.
    Closed,
    /// Another handle that shares the guard released it.
    Released,
}

impl LostReason {
    /// Returns the label used in metrics.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::LeaseExpired => "lease_expired",
            Self::SessionExpired => "session_expired",
            Self::SessionAbandoned => "session_abandoned",
            Self::AuthFailed => "auth_failed",
            Self::NodeDeleted => "node_deleted",
            Self::Closed => "closed",
            Self::Released => "released",
        }
    }
}

impl fmt::Display for LostReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::LeaseExpired => "no write was acknowledged before the lease ran out",
            Self::SessionExpired => "the session expired",
            Self::SessionAbandoned => "the client gave up the session",
            Self::AuthFailed => "the servers refused the client's credentials",
            Self::NodeDeleted => "another client deleted its node",
            Self::Closed => "the client was closed",
            Self::Released => "another handle released it",
        })
    }
}

/// Error of a lost guard: another client may now hold its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the guard is lost: {reason}")]
pub struct Lost {
    /// The reason for the loss.
    pub reason: LostReason,
}

impl Lost {
    /// Always returns false, because a lost guard stays lost.
    pub fn is_retryable(&self) -> bool {
        false
    }

    /// Always returns false, because an operation whose guard is lost after the request was sent fails with
    /// `OutcomeUnknown` instead.
    pub fn may_have_applied(&self) -> bool {
        false
    }

    /// Returns `None`, because the guard knows its path.
    pub fn path(&self) -> Option<&str> {
        None
    }
}

impl From<Lost> for Error {
    fn from(lost: Lost) -> Self {
        Self::of_recipe(ErrorKind::Lost(lost.reason), "run", lost)
    }
}
