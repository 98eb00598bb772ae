use docent_core::ErrorKind;
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Error of a request to a [`Balanced`](crate::Balanced) service: that of the last attempt, if there were
/// several.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum CallError<E> {
    /// No instance of the service is known that is enabled and passes the filter. Nothing was sent.
    #[error("call: service {service:?} has no available instance")]
    NoInstance {
        /// Name of the service.
        service: String,
    },
    /// No connection to the tried instances could be opened, or none accepted requests in time. Nothing was
    /// sent.
    #[error("call: cannot reach instance {id:?} of service {service:?}: {cause}")]
    Unreachable {
        /// Name of the service.
        service: String,
        /// Id of the instance that was tried last.
        id: String,
        /// Error of opening the connection, or the timeout.
        cause: Arc<dyn Error + Send + Sync>,
    },
    /// The instance did not answer within the time of an attempt. It may have handled the request, or may
    /// still do so.
    #[error("call: instance {id:?} of service {service:?} did not answer within {timeout:?}")]
    TimedOut {
        /// Name of the service.
        service: String,
        /// Id of the instance that was tried last.
        id: String,
        /// Time limit of an attempt.
        timeout: Duration,
    },
    /// Error of the service that represents the connection.
    #[error("call: instance {id:?} of service {service:?} failed: {error}")]
    Failed {
        /// Name of the service.
        service: String,
        /// Id of the instance that was tried last.
        id: String,
        /// The error.
        error: E,
        /// True if nothing was sent.
        unsent: bool,
    },
}

impl<E> CallError<E> {
    /// Returns true if nothing was sent, because other instances may become available.
    pub fn is_retryable(&self) -> bool {
        !self.may_have_applied()
    }

    /// Returns true if an instance may have handled the request.
    pub fn may_have_applied(&self) -> bool {
        match self {
            Self::NoInstance { .. } | Self::Unreachable { .. } => false,
            Self::TimedOut { .. } => true,
            Self::Failed { unsent, .. } => !unsent,
        }
    }

    /// Returns `None`, because the error is about a service rather than a node.
    pub fn path(&self) -> Option<&str> {
        None
    }
}

impl<E: fmt::Debug + fmt::Display + Send + Sync + 'static> From<CallError<E>> for docent_core::Error {
    fn from(error: CallError<E>) -> Self {
        let kind = match error.may_have_applied() {
            true => ErrorKind::OutcomeUnknown,
            false => ErrorKind::Unavailable,
        };
        Self::of_recipe(kind, "call", error)
    }
}
