use docent_core::{Error, ErrorKind};
use std::future::Future;
use std::time::Duration;

/// Error of waiting at a barrier with a timeout.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum BarrierError {
    /// The timeout expired: the barrier is still set, or members are missing. The timeout bounds the whole
    /// call; the node of a member is removed in the background.
    #[error("{operation} {path:?}: timed out")]
    TimedOut {
        /// Operation: `wait` or `enter`.
        operation: &'static str,
        /// Path of the barrier that was passed to its constructor.
        path: String,
    },
    /// The servers could not be reached, or refused a request.
    #[error(transparent)]
    Core(#[from] Error),
}

impl BarrierError {
    /// Returns whether the same call may succeed later.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::TimedOut { .. } => true,
            Self::Core(error) => error.is_retryable(),
        }
    }

    /// Returns whether a failed call may have left something at the servers. Such leftovers are removed in
    /// the background or with the session.
    pub fn may_have_applied(&self) -> bool {
        matches!(self, Self::Core(error) if error.may_have_applied())
    }

    /// Returns the path that the error concerns.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::TimedOut { path, .. } => Some(path),
            Self::Core(error) => error.path(),
        }
    }
}

impl From<BarrierError> for Error {
    fn from(error: BarrierError) -> Self {
        match &error {
            BarrierError::TimedOut { operation, path } => {
                let (operation, path) = (*operation, path.clone());
                Self::of_recipe(ErrorKind::NotAcquired, operation, error).at(&path)
            }
            BarrierError::Core(error) => error.clone(),
        }
    }
}

/// Waits for at most `timeout`.
pub(super) fn within<T>(
    timeout: Duration,
    operation: &'static str,
    path: String,
    waiting: impl Future<Output = Result<T, Error>> + Send,
) -> impl Future<Output = Result<T, BarrierError>> + Send {
    // Boxed first, because a future that is moved into another future takes up space in both.
    let waiting = Box::pin(waiting);
    async move {
        match tokio::time::timeout(timeout, waiting).await {
            Ok(done) => Ok(done?),
            Err(_) => Err(BarrierError::TimedOut { operation, path }),
        }
    }
}
