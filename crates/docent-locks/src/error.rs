use crate::NotAcquired;
use docent_core::recipe::WaitError;
use docent_core::{Error, Lost};

/// Errors of acquiring a lock. Nothing of the attempt is left at the servers, or it is being removed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum AcquireError {
    /// Somebody holds it or waits for it (calls that begin with `try_` only).
    #[error("acquire {0}")]
    Busy(Box<NotAcquired>),
    /// The time given was not enough (calls that end with `_timeout` only). It bounds the whole call, so that
    /// nothing is waited for after it: the ticket is being removed. Its delete was submitted before this was
    /// returned, so that it is ahead of all later requests of the client; a ticket whose create was not
    /// answered yet is looked for and deleted in the background.
    #[error("acquire {0}")]
    TimedOut(Box<NotAcquired>),
    /// The owner holds the lock already, but that hold is lost: release it first.
    #[error("acquire: the owner's hold cannot be re-entered: {0}")]
    Lost(#[from] Lost),
    /// The owner reads, or waits to, and wants to write: it would wait for itself. Release the read lock
    /// first, or write from the start and [`downgrade`](crate::WriteGuard::downgrade). Or it holds a
    /// [`SharedMutex`](crate::SharedMutex), and wants to acquire a [`Mutex`](crate::Mutex) of the same path.
    #[error("acquire: the owner has it in another way, or waits to, and would wait for itself")]
    WouldDeadlock,
    /// The servers could not be reached or refused.
    #[error(transparent)]
    Core(#[from] Error),
}

impl AcquireError {
    /// True when the same call may succeed later.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Busy(_) | Self::TimedOut(_) => true,
            Self::Lost(_) | Self::WouldDeadlock => false,
            Self::Core(error) => error.is_retryable(),
        }
    }

    /// True when something may be left at the servers although it failed: it goes in the background, or with
    /// the session.
    pub fn may_have_applied(&self) -> bool {
        matches!(self, Self::Core(error) if error.may_have_applied())
    }

    /// The path it is about, where the servers were asked.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Busy(missed) | Self::TimedOut(missed) => Some(missed.path()),
            Self::Core(error) => error.path(),
            Self::Lost(_) | Self::WouldDeadlock => None,
        }
    }

    /// Where it was not acquired and why, for `Busy` and `TimedOut`.
    pub fn not_acquired(&self) -> Option<&NotAcquired> {
        match self {
            Self::Busy(missed) | Self::TimedOut(missed) => Some(missed),
            _ => None,
        }
    }

    /// `Busy` at `path`, of which nothing else is known.
    pub(crate) fn busy(path: &str) -> Self {
        Self::Busy(Box::new(NotAcquired::at(path)))
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
