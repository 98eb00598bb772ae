use std::fmt;

/// Reason why a guard was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LostReason {
    /// No write was acknowledged in time: the servers may end the session soon.
    LeaseExpired,
    /// The servers ended the session.
    SessionExpired,
    /// The session was given up, because no server could be reached for too long or
    /// [a node could not be deleted](crate::ClientBuilder::end_session_on_refused_delete).
    SessionAbandoned,
    /// The servers refused the client's credentials when its link was made again.
    AuthFailed,
    /// Somebody deleted the guard's node.
    NodeDeleted,
    /// The client was closed; or its task is gone, because it panicked or its runtime was shut down.
    Closed,
    /// It was given up by another handle that shares it.
    Released,
}

impl LostReason {
    /// Label in metrics.
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
            Self::SessionExpired => "the servers ended the session",
            Self::SessionAbandoned => "the session was given up",
            Self::AuthFailed => "the servers refused the client's credentials",
            Self::NodeDeleted => "its node was deleted by somebody else",
            Self::Closed => "the client was closed",
            Self::Released => "it was given up",
        })
    }
}

/// Error of a lost guard: another holder may have its place now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the guard is lost: {reason}")]
pub struct Lost {
    /// The reason.
    pub reason: LostReason,
}

impl Lost {
    /// Always false: a guard is lost for good.
    pub fn is_retryable(&self) -> bool {
        false
    }

    /// Always false: an operation whose guard is lost after it was sent has an unknown outcome instead.
    pub fn may_have_applied(&self) -> bool {
        false
    }

    /// `None`: the guard knows its path.
    pub fn path(&self) -> Option<&str> {
        None
    }
}
