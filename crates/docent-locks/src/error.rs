use docent_core::recipe::WaitError;
use docent_core::{Error, Lost};

/// Errors of acquiring a lock. Nothing of the attempt is left at the servers, or it is being removed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum AcquireError {
    /// Somebody holds it or waits for it (calls that begin with `try_` only).
    #[error("the lock is held by somebody else")]
    Busy,
    /// The time given was not enough (calls that end with `_timeout` only). It bounds the whole call, so that
    /// nothing is waited for after it: the ticket is being removed. Its delete was submitted before this was
    /// returned, so that it is ahead of all later requests of the client; a ticket whose create was not
    /// answered yet is looked for and deleted in the background.
    #[error("the lock was not acquired in time")]
    TimedOut,
    /// The owner holds the lock already, but that hold is lost: release it first.
    #[error("the owner's hold on the lock cannot be re-entered: {0}")]
    Lost(#[from] Lost),
    /// The owner reads, or waits to, and wants to write: it would wait for itself. Release the read lock
    /// first, or write from the start and [`downgrade`](crate::WriteGuard::downgrade).
    #[error("the owner reads or waits to: it would wait for itself to write")]
    WouldDeadlock,
    /// The servers could not be reached or refused.
    #[error(transparent)]
    Core(#[from] Error),
}

impl AcquireError {
    /// True when the same call may succeed later.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Busy | Self::TimedOut => true,
            Self::Lost(_) | Self::WouldDeadlock => false,
            Self::Core(error) => error.is_retryable(),
        }
    }
}

/// `None` when the ticket is gone: then a new one is drawn.
pub(crate) fn after_wait(error: WaitError) -> Option<AcquireError> {
    match error {
        WaitError::Gone => None,
        WaitError::Core(error) => Some(AcquireError::Core(error)),
        other => Some(AcquireError::Core(Error::invalid_input("acquire", other.to_string()))),
    }
}
