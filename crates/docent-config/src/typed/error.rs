use crate::{PublishError, Rejection, SubscribeError};
use docent_core::{Error, ErrorKind};

/// Error of a [`TypedNode`](crate::TypedNode), which names the path and the cause.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum NodeError {
    /// The node to be created already exists. Nothing was written.
    #[error("create {path:?}: the node already exists")]
    Exists {
        /// The node.
        path: String,
    },
    /// The data of the node is not a value of the type.
    #[error("read {path:?}: {fault}")]
    Undecodable {
        /// The node.
        path: String,
        /// Revision and cause. [`detail`](Rejection::detail) has the codec's message.
        fault: Rejection,
    },
    /// The codec cannot write the value, or could not read it back. Nothing was written.
    #[error("write {path:?}: {fault}")]
    Unencodable {
        /// The node.
        path: String,
        /// Cause. [`detail`](Rejection::detail) has the codec's message.
        fault: Rejection,
    },
    /// The servers could not be reached, or refused the request.
    #[error(transparent)]
    Core(#[from] Error),
}

impl NodeError {
    pub(super) fn of_read(error: SubscribeError, path: &str) -> Self {
        let path = path.to_owned();
        match error {
            SubscribeError::Refused { rejection: fault, .. } => Self::Undecodable { path, fault },
            SubscribeError::Core(error) => Self::Core(error),
            SubscribeError::Missing { .. } => {
                unreachable!("a plain read never fails because a value is missing")
            }
        }
    }

    pub(super) fn of_write(error: PublishError, path: &str) -> Self {
        let path = path.to_owned();
        match error {
            // Only a create depends on what existed before, and there is no history.
            PublishError::Conflict | PublishError::NoSuchRevision => Self::Exists { path },
            PublishError::Refused(fault) => Self::Unencodable { path, fault },
            PublishError::Unreadable(fault) => Self::Undecodable { path, fault },
            PublishError::Core(error) => Self::Core(error),
        }
    }

    /// Returns true if the same call may succeed later.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Core(error) if error.is_retryable())
    }

    /// Returns true if the value may have been written, or the node deleted, despite the error.
    pub fn may_have_applied(&self) -> bool {
        matches!(self, Self::Core(error) if error.may_have_applied())
    }

    /// Returns the path that the error is about.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Exists { path } | Self::Undecodable { path, .. } | Self::Unencodable { path, .. } => {
                Some(path)
            }
            Self::Core(error) => error.path(),
        }
    }
}

impl From<NodeError> for Error {
    fn from(error: NodeError) -> Self {
        let (kind, operation) = match &error {
            NodeError::Exists { .. } => (ErrorKind::NodeExists, "create"),
            NodeError::Undecodable { .. } => (ErrorKind::InvalidData, "read"),
            NodeError::Unencodable { .. } => (ErrorKind::InvalidData, "write"),
            NodeError::Core(error) => return error.clone(),
        };
        let path = error.path().map(str::to_owned);
        Self::of_recipe(kind, operation, error).at_path(path.as_deref())
    }
}
