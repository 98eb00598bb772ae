use crate::NotAcquired;
use docent_core::recipe::{InOperation, WaitError};
use docent_core::{Error, ErrorKind, Lost};

/// Error of acquiring a lock. After an error, the attempt leaves nothing at the servers, or what it left is
/// being removed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum AcquireError {
    /// Another client holds the lock or waits for it (only for calls whose name begins with `try_`).
    #[error("acquire {0}")]
    Busy(Box<NotAcquired>),
    /// The timeout expired (only for calls whose name ends with `_timeout`). The timeout bounds the whole
    /// call: it does not wait until the ticket is removed. The ticket's delete was submitted before this
    /// error was returned and therefore precedes all later requests of the client. If the create of the
    /// ticket was not answered yet, the ticket is looked up and deleted in the background.
    #[error("acquire {0}")]
    TimedOut(Box<NotAcquired>),
    /// The owner already holds the lock, but that hold is lost. Release it first.
    #[error("acquire: cannot re-enter the owner's hold: {0}")]
    Lost(#[from] Lost),
    /// The owner would wait for itself, for one of two reasons:
    ///
    /// - It reads, or waits to read, and wants to write. Release the read lock first, or write from the start
    ///   and [`downgrade`](crate::WriteGuard::downgrade).
    /// - It holds a [`SharedMutex`](crate::SharedMutex) and wants to acquire a [`Mutex`](crate::Mutex) of the
    ///   same path.
    #[error(
        "acquire: the owner already holds this lock in another mode, or waits for it, and would wait for itself"
    )]
    WouldDeadlock,
    /// The servers could not be reached, or refused a request.
    #[error(transparent)]
    Core(#[from] Error),
}

impl AcquireError {
    /// Returns whether the same call may succeed later.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Busy(_) | Self::TimedOut(_) => true,
            Self::Lost(_) | Self::WouldDeadlock => false,
            Self::Core(error) => error.is_retryable(),
        }
    }

    /// Returns whether a failed call may have left something at the servers. Such leftovers are removed in
    /// the background or with the session.
    pub fn may_have_applied(&self) -> bool {
        matches!(self, Self::Core(error) if error.may_have_applied())
    }

    /// Returns the path that the error concerns; `None` for `Lost` and `WouldDeadlock`.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Busy(missed) | Self::TimedOut(missed) => Some(missed.path()),
            Self::Core(error) => error.path(),
            Self::Lost(_) | Self::WouldDeadlock => None,
        }
    }

    /// Returns details about which lock was not acquired and why, for `Busy` and `TimedOut`.
    pub fn not_acquired(&self) -> Option<&NotAcquired> {
        match self {
            Self::Busy(missed) | Self::TimedOut(missed) => Some(missed),
            _ => None,
        }
    }

    /// Creates `Busy` for `path`, without further details.
    pub(crate) fn busy(path: &str) -> Self {
        Self::Busy(Box::new(NotAcquired::at(path)))
    }
}

impl From<AcquireError> for Error {
    fn from(error: AcquireError) -> Self {
        let kind = match &error {
            // Whether another client holds the lock is then unknown.
            AcquireError::Busy(missed) | AcquireError::TimedOut(missed) if !missed.servers_reachable() => {
                ErrorKind::Timeout
            }
            AcquireError::Busy(_) | AcquireError::TimedOut(_) => ErrorKind::NotAcquired,
            AcquireError::Lost(lost) => ErrorKind::Lost(lost.reason),
            AcquireError::WouldDeadlock => ErrorKind::InvalidInput,
            AcquireError::Core(error) => return error.clone(),
        };
        let path = error.path().map(str::to_owned);
        Self::of_recipe(kind, "acquire", error).at_path(path.as_deref())
    }
}

impl InOperation for AcquireError {
    fn in_operation(self, operation: &'static str) -> Self {
        match self {
            Self::Core(error) => Self::Core(error.in_operation(operation)),
            other => other,
        }
    }
}

/// Returns `None` if the ticket was deleted: the caller then takes another ticket.
pub(crate) fn after_wait(error: WaitError) -> Option<AcquireError> {
    match error {
        WaitError::Gone => None,
        WaitError::Core(error) => Some(AcquireError::Core(error)),
        other => Some(AcquireError::Core(Error::invalid_input("acquire", other.to_string()))),
    }
}
