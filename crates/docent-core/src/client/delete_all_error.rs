use crate::error::{Error, ErrorKind};
use std::error::Error as StdError;
use std::fmt;

/// Error of [`Client::delete_all`](super::Client::delete_all): some nodes were not deleted.
#[derive(Debug, Clone)]
pub struct DeleteAllError {
    error: Error,
    deleted: usize,
    left: Vec<Error>,
}

impl DeleteAllError {
    pub(super) fn new(error: Error, deleted: usize, left: Vec<Error>) -> Self {
        Self { error, deleted, left }
    }

    /// Returns the number of nodes that were deleted despite the error.
    pub fn deleted(&self) -> usize {
        self.deleted
    }

    /// Returns the errors of the nodes that were refused, each with its path, at most 100. The nodes above
    /// them remain, too.
    pub fn left(&self) -> &[Error] {
        &self.left
    }

    /// Returns the error that ended the deletion, otherwise that of the first node that was refused.
    pub fn error(&self) -> &Error {
        &self.error
    }

    /// Returns the kind of the [error](Self::error).
    pub fn kind(&self) -> ErrorKind {
        self.error.kind()
    }

    /// Returns true if the same call may succeed later without any change by the caller.
    pub fn is_retryable(&self) -> bool {
        self.error.is_retryable()
    }

    /// Returns true if more nodes than [those counted](Self::deleted) may have been deleted.
    pub fn may_have_applied(&self) -> bool {
        self.error.may_have_applied()
    }

    /// Returns the path that the [error](Self::error) concerns, if it is known.
    pub fn path(&self) -> Option<&str> {
        self.error.path()
    }
}

impl From<DeleteAllError> for Error {
    fn from(error: DeleteAllError) -> Self {
        let path = error.path().map(str::to_owned);
        let may_have_applied = error.may_have_applied();
        Self::of_recipe(error.kind(), "delete_all", error)
            .at_path(path.as_deref())
            .maybe_applied(may_have_applied)
    }
}

impl fmt::Display for DeleteAllError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { error, deleted, .. } = self;
        write!(f, "delete_all: only {deleted} nodes were deleted: {error}")
    }
}

impl StdError for DeleteAllError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&self.error)
    }
}
