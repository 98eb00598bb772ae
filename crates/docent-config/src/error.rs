use crate::Rejection;
use docent_core::recipe::InOperation;
use docent_core::{Error, ErrorKind};

/// Error of publishing a value.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum PublishError {
    /// The published value is not the one that the caller saw, because another client wrote first. Nothing
    /// was written.
    #[error("publish: another client published or deleted the value meanwhile")]
    Conflict,
    /// Readers would reject the value. Nothing was written.
    #[error("publish: rejected before it was published: {0}")]
    Refused(Rejection),
    /// The current value, from which the new one is computed, cannot be read. Nothing was written.
    #[error("publish: cannot read the current value: {0}")]
    Unreadable(Rejection),
    /// The history does not contain that revision, or no longer does. Nothing was written.
    #[error("publish: the history does not contain that revision")]
    NoSuchRevision,
    /// The servers could not be reached, or refused the request.
    #[error(transparent)]
    Core(#[from] Error),
}

impl InOperation for PublishError {
    fn in_operation(self, operation: &'static str) -> Self {
        match self {
            Self::Core(error) => Self::Core(error.in_operation(operation)),
            other => other,
        }
    }
}

impl PublishError {
    /// Returns true if the same call may succeed later.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Core(error) if error.is_retryable())
    }

    /// Returns true if the value may have been published despite the error.
    pub fn may_have_applied(&self) -> bool {
        matches!(self, Self::Core(error) if error.may_have_applied())
    }

    /// Returns the path that the error is about, if a request to the servers failed.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Core(error) => error.path(),
            _ => None,
        }
    }
}

impl From<PublishError> for Error {
    fn from(error: PublishError) -> Self {
        let kind = match error {
            PublishError::Conflict => ErrorKind::BadVersion,
            PublishError::Refused(_) | PublishError::Unreadable(_) => ErrorKind::InvalidData,
            PublishError::NoSuchRevision => ErrorKind::InvalidInput,
            PublishError::Core(error) => return error,
        };
        Self::of_recipe(kind, "publish", error)
    }
}

/// Error of starting a subscription: there is no value to start with.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum SubscribeError {
    /// No value was published yet, or it was deleted.
    #[error("config {path:?}: no value is published at the path")]
    Missing {
        /// Path as given.
        path: String,
    },
    /// The published value was rejected, and there was no value before it.
    #[error("config {path:?}: the published value was rejected: {rejection}")]
    Refused {
        /// Path as given.
        path: String,
        /// Rejected value.
        rejection: Rejection,
    },
    /// The servers could not be reached, or refused the request.
    #[error(transparent)]
    Core(#[from] Error),
}

impl InOperation for SubscribeError {
    fn in_operation(self, operation: &'static str) -> Self {
        match self {
            Self::Core(error) => Self::Core(error.in_operation(operation)),
            other => other,
        }
    }
}

impl SubscribeError {
    /// Returns true if the same call may succeed later.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Missing { .. } | Self::Refused { .. } => true,
            Self::Core(error) => error.is_retryable(),
        }
    }

    /// Returns true if something may have been written despite the error. This can only be the seed of a
    /// [`SharedValue`](crate::SharedValue) or [`SharedCount`](crate::SharedCount).
    pub fn may_have_applied(&self) -> bool {
        matches!(self, Self::Core(error) if error.may_have_applied())
    }

    /// Returns the path that the error is about.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Missing { path } | Self::Refused { path, .. } => Some(path),
            Self::Core(error) => error.path(),
        }
    }
}

impl From<SubscribeError> for Error {
    fn from(error: SubscribeError) -> Self {
        match &error {
            // A valid value may be published at any time.
            SubscribeError::Missing { path } | SubscribeError::Refused { path, .. } => {
                let path = path.clone();
                Self::of_recipe(ErrorKind::Unavailable, "config", error).at(&path)
            }
            SubscribeError::Core(error) => error.clone(),
        }
    }
}
