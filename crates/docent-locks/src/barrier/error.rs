use docent_core::Error;
use std::future::Future;
use std::time::Duration;

/// Errors of waiting at a barrier for a time.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum BarrierError {
    /// The time given was not enough: the barrier is still set, or members are missing. It bounds the whole
    /// call, so that nothing is waited for after it; the node of a member is being removed.
    #[error("{operation} {path:?}: the time given was not enough")]
    TimedOut {
        /// The operation: `wait` or `enter`.
        operation: &'static str,
        /// The barrier's path, as it was given.
        path: String,
    },
    /// The servers could not be reached or refused.
    #[error(transparent)]
    Core(#[from] Error),
}

impl BarrierError {
    /// True when the same call may succeed later.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::TimedOut { .. } => true,
            Self::Core(error) => error.is_retryable(),
        }
    }

    /// True when something may be left at the servers although it failed: it goes in the background, or with
    /// the session.
    pub fn may_have_applied(&self) -> bool {
        matches!(self, Self::Core(error) if error.may_have_applied())
    }

    /// The path it is about.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::TimedOut { path, .. } => Some(path),
            Self::Core(error) => error.path(),
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
    // Boxed before it is moved on: a future that is handed from one to the next has room in both.
    let waiting = Box::pin(waiting);
    async move {
        match tokio::time::timeout(timeout, waiting).await {
            Ok(done) => Ok(done?),
            Err(_) => Err(BarrierError::TimedOut { operation, path }),
        }
    }
}
