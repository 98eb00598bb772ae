use crate::error::Error;
use crate::session::{Cause, SessionEnd};

/// Reason why a step could not be finished.
pub(super) enum StepError {
    /// The link was lost: repeat the step, which waits for the next link.
    Retry,
    /// A server or the client is overloaded: repeat the step after a pause.
    Busy,
    /// The session has ended.
    Ended,
    /// The client is closed.
    Closed,
    /// The servers refused the request.
    Refused(Error),
    /// The handle's preparation refused the data.
    Unprepared(Error),
}

impl From<Cause> for StepError {
    fn from(cause: Cause) -> Self {
        match cause {
            Cause::LinkLost => Self::Retry,
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
