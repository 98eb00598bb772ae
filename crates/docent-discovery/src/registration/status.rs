use docent_core::recipe::KeptStatus;
use docent_core::{Error, ErrorKind};
use std::fmt;

/// State of a [`Registration`](crate::Registration).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum RegistrationStatus {
    /// The instance is being announced: the servers cannot be reached at the moment, or a new session is
    /// being opened.
    Pending,
    /// The instance is announced, as far as the servers have reported.
    Announced,
    /// Another session has a node with this id. It is the session of an earlier process with the same id, or
    /// of a process that should have another id. The client waits for the end of that session.
    Occupied {
        /// Session that owns the node.
        session_id: i64,
    },
    /// The instance cannot be announced. The client retries.
    Failing(Error),
    /// The instance was deregistered.
    Removed,
    /// The client is closed, so the instance is not maintained any more. A dynamic instance is deleted with
    /// its session, a static or permanent one stays.
    Closed,
}

impl From<KeptStatus> for RegistrationStatus {
    fn from(status: KeptStatus) -> Self {
        match status {
            KeptStatus::Present { .. } => Self::Announced,
            KeptStatus::Occupied { session_id } => Self::Occupied { session_id },
            KeptStatus::Failing(error) if error.kind() == ErrorKind::Closed => Self::Closed,
            KeptStatus::Failing(error) => Self::Failing(error),
            KeptStatus::Removed => Self::Removed,
            // Any other state is a transition to one of these.
            _ => Self::Pending,
        }
    }
}

impl fmt::Display for RegistrationStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pending => f.write_str("pending"),
            Self::Announced => f.write_str("announced"),
            Self::Occupied { session_id } => write!(f, "occupied by the session {session_id:#x}"),
            Self::Failing(error) => write!(f, "failing: {error}"),
            Self::Removed => f.write_str("removed"),
            Self::Closed => f.write_str("closed"),
        }
    }
}
