use crate::error::Error;
use crate::session::{Cause, SessionEnd};

/// Reason why a step could not be finished.
pub(super) enum Trouble {
    /// The link was lost: do it again, which waits for the next.
    Again,
    /// A server or the client is too busy: do it again after a pause.
    Busy,
    /// The session has ended.
    Ended,
    /// The client is closed.
    Closed,
    /// The servers refuse.
    Refused(Error),
}

impl From<Cause> for Trouble {
    fn from(cause: Cause) -> Self {
        match cause {
            Cause::LinkLost => Self::Again,
            Cause::QueueFull | Cause::Deadline => Self::Busy,
            Cause::TooLarge { size, limit } => Self::Refused(Error::too_large("create", size, limit)),
            Cause::TooManyEphemerals { bytes, limit } => {
                Self::Refused(Error::too_many_ephemerals("create", bytes, limit))
            }
            Cause::Ended(SessionEnd::Closed) => Self::Closed,
            Cause::Ended(_) => Self::Ended,
        }
    }
}
