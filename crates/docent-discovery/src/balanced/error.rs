use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

/// Errors of a request to a [`Balanced`](crate::Balanced) service: of its last attempt, where there were
/// several.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum CallError<E> {
    /// No instance of the service is known that is enabled and passes the filter. Nothing was sent.
    #[error("call: service {service:?} has no instance that can be picked")]
    NoInstance {
        /// The service's name.
        service: String,
    },
    /// No connection was made to the instances that were tried, or none that takes requests in time. Nothing
    /// was sent.
    #[error("call: instance {id:?} of service {service:?} cannot be reached: {cause}")]
    Unreachable {
        /// The service's name.
        service: String,
        /// The id of the instance that was tried last.
        id: String,
        /// Error of the maker of connections, or the time that ran out.
        cause: Arc<dyn Error + Send + Sync>,
    },
    /// The instance did not answer within the time of an attempt. It may have done what was asked, or do it
    /// yet.
    #[error("call: instance {id:?} of service {service:?} did not answer within {timeout:?}")]
    TimedOut {
        /// The service's name.
        service: String,
        /// The id of the instance that was tried last.
        id: String,
        /// The time of an attempt.
        timeout: Duration,
    },
    /// Error of the service that the maker made.
    #[error("call: instance {id:?} of service {service:?} failed: {error}")]
    Failed {
        /// The service's name.
        service: String,
        /// The id of the instance that was tried last.
        id: String,
        /// The error.
        error: E,
        /// True when nothing was sent.
        unsent: bool,
    },
}

impl<E> CallError<E> {
    /// True when nothing was sent: instances come and go.
    pub fn is_retryable(&self) -> bool {
        !self.may_have_applied()
    }

    /// True when an instance may have done what was asked.
    pub fn may_have_applied(&self) -> bool {
        match self {
            Self::NoInstance { .. } | Self::Unreachable { .. } => false,
            Self::TimedOut { .. } => true,
            Self::Failed { unsent, .. } => !unsent,
        }
    }

    /// `None`: it is about a service, whatever nodes that has.
    pub fn path(&self) -> Option<&str> {
        None
    }
}
