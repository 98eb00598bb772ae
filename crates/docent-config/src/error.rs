use crate::Rejection;
use docent_core::Error;

/// Errors of publishing a value.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum PublishError {
    /// The published value is not the one that the caller saw: somebody else was faster. Nothing was written.
    #[error("publish: somebody else has published or deleted it meanwhile")]
    Conflict,
    /// The value would be refused by its readers. Nothing was written.
    #[error("publish: refused before it was published: {0}")]
    Refused(Rejection),
    /// The present value, from which the new one would be made, cannot be read. Nothing was written.
    #[error("publish: the present value cannot be read: {0}")]
    Unreadable(Rejection),
    /// The history does not hold that revision, or not any more. Nothing was written.
    #[error("publish: the history does not hold that revision")]
    NoSuchRevision,
    /// The servers could not be reached or refused.
    #[error(transparent)]
    Core(#[from] Error),
}

impl PublishError {
    /// True when the same call may succeed later.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Core(error) if error.is_retryable())
    }

    /// True when the value may have been published although it failed.
    pub fn may_have_applied(&self) -> bool {
        matches!(self, Self::Core(error) if error.may_have_applied())
    }

    /// The path it is about, where the servers were asked.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Core(error) => error.path(),
            _ => None,
        }
    }
}

/// Errors of beginning a subscription: there is no value to begin with.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum SubscribeError {
    /// Nobody has published it yet, or it was deleted.
    #[error("subscribe {path:?}: nothing is published there")]
    Missing {
        /// The path, as it was given.
        path: String,
    },
    /// The value that is published was refused, and there was none before.
    #[error("subscribe {path:?}: refused: {rejection}")]
    Refused {
        /// The path, as it was given.
        path: String,
        /// The refused value.
        rejection: Rejection,
    },
    /// The servers could not be reached or refused.
    #[error(transparent)]
    Core(#[from] Error),
}

impl SubscribeError {
    /// True when the same call may succeed later.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Missing { .. } | Self::Refused { .. } => true,
            Self::Core(error) => error.is_retryable(),
        }
    }

    /// True when something may have been written although it failed: the seed of a
    /// [`SharedValue`](crate::SharedValue) or [`SharedCount`](crate::SharedCount), and nothing else.
    pub fn may_have_applied(&self) -> bool {
        matches!(self, Self::Core(error) if error.may_have_applied())
    }

    /// The path it is about.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Missing { path } | Self::Refused { path, .. } => Some(path),
            Self::Core(error) => error.path(),
        }
    }
}
