use crate::{PublishError, Rejection, SubscribeError};
use docent_core::Error;

/// Errors of a [`TypedNode`](crate::TypedNode): each names the path and the cause.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum NodeError {
    /// The node that was to be created exists. Nothing was written.
    #[error("create {path:?}: the node exists already")]
    Exists {
        /// The node.
        path: String,
    },
    /// The data of the node is no value of the type.
    #[error("read {path:?}: {fault}")]
    Undecodable {
        /// The node.
        path: String,
        /// The revision and the cause. [`detail`](Rejection::detail) has the codec's own words.
        fault: Rejection,
    },
    /// The codec does not write the value, or could not read it back. Nothing was written.
    #[error("write {path:?}: {fault}")]
    Unencodable {
        /// The node.
        path: String,
        /// The cause. [`detail`](Rejection::detail) has the codec's own words.
        fault: Rejection,
    },
    /// The servers could not be reached or refused.
    #[error(transparent)]
    Core(#[from] Error),
}

impl NodeError {
    pub(super) fn of_read(error: SubscribeError, path: &str) -> Self {
        let path = path.to_owned();
        match error {
            SubscribeError::Refused { rejection: fault, .. } => Self::Undecodable { path, fault },
            SubscribeError::Core(error) => Self::Core(error),
            SubscribeError::Missing { .. } => unreachable!("a look is no subscription"),
        }
    }

    pub(super) fn of_write(error: PublishError, path: &str) -> Self {
        let path = path.to_owned();
        match error {
            // Only a create is bound to what was there; and there is no history.
            PublishError::Conflict | PublishError::NoSuchRevision => Self::Exists { path },
            PublishError::Refused(fault) => Self::Unencodable { path, fault },
            PublishError::Unreadable(fault) => Self::Undecodable { path, fault },
            PublishError::Core(error) => Self::Core(error),
        }
    }

    /// True when the same call may succeed later.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Core(error) if error.is_retryable())
    }

    /// True when the value may have been written, or the node deleted, although it failed.
    pub fn may_have_applied(&self) -> bool {
        matches!(self, Self::Core(error) if error.may_have_applied())
    }

    /// The path it is about.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Exists { path } | Self::Undecodable { path, .. } | Self::Unencodable { path, .. } => {
                Some(path)
            }
            Self::Core(error) => error.path(),
        }
    }
}
