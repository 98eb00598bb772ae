use docent_codec::CodecError;
use docent_core::recipe::InOperation;
use docent_core::{Error, ErrorKind, Lost};
use std::error::Error as StdError;
use std::fmt;

/// Error of putting items. Nothing was put, unless [`may_have_applied`](Self::may_have_applied) returns true.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum PutError {
    /// The queue has reached its capacity.
    #[error("put: the queue has no room: {length} items of at most {capacity}")]
    Full {
        /// Number of items in the queue.
        length: usize,
        /// Maximum number of items in the queue.
        capacity: usize,
    },
    /// The codec could not encode the item.
    #[error("put: cannot encode the item: {0}")]
    Encode(CodecError),
    /// The codec could not decode what it encoded, so no consumer could. An example is a number in JSON that
    /// is not finite.
    #[error("put: cannot decode the item after encoding it: {0}")]
    Unreadable(CodecError),
    /// The sequence numbers of the queue's items are nearly used up. Call
    /// [`Queue::reset`](crate::Queue::reset) once the queue is empty.
    #[error("put: the sequence numbers of the queue's items are nearly used up")]
    SequenceExhausted,
    /// Another error, such as `TooLarge` for an item that does not fit into a request.
    /// [`may_have_applied`](Error::may_have_applied) returns whether the items may be in the queue.
    #[error(transparent)]
    Core(#[from] Error),
}

impl InOperation for PutError {
    fn in_operation(self, operation: &'static str) -> Self {
        match self {
            Self::Core(error) => Self::Core(error.in_operation(operation)),
            other => other,
        }
    }
}

impl PutError {
    /// Returns whether the same call may succeed later without any change by the caller.
    pub fn is_retryable(&self) -> bool {
        match self {
            // Consumers make room in the queue.
            Self::Full { .. } => true,
            Self::Encode(_) | Self::Unreadable(_) | Self::SequenceExhausted => false,
            Self::Core(error) => error.is_retryable(),
        }
    }

    /// Returns whether the items may be in the queue.
    pub fn may_have_applied(&self) -> bool {
        matches!(self, Self::Core(error) if error.may_have_applied())
    }

    /// Returns the path that the error concerns, if it is known.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Core(error) => error.path(),
            _ => None,
        }
    }
}

/// Returns the kind of [`Error`] into which an error of a put converts.
fn kind_of_put(error: &PutError) -> ErrorKind {
    match error {
        PutError::Full { .. } => ErrorKind::Unavailable,
        PutError::Encode(_) | PutError::Unreadable(_) => ErrorKind::InvalidData,
        PutError::SequenceExhausted => ErrorKind::SequenceExhausted,
        PutError::Core(error) => error.kind(),
    }
}

impl From<PutError> for Error {
    fn from(error: PutError) -> Self {
        match error {
            PutError::Core(error) => error,
            error => Self::of_recipe(kind_of_put(&error), "put", error),
        }
    }
}

/// Error of ending a delivery: acknowledging it, giving it back or rejecting it. The operation failed, or its
/// outcome is unknown.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum AckError {
    /// The delivery was lost before anything was written: another consumer has the item, or will get it.
    Lost(Lost),
    /// The item could not be put into the other queue, and nothing was written.
    Put(PutError),
    /// Another error. [`may_have_applied`](Error::may_have_applied) returns whether the operation may have
    /// been applied; if it was not, the item is back in the queue.
    Core(Error),
}

// Written by hand, because the source of a put's error is that of this error, whose text contains the put's.
impl fmt::Display for AckError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost(lost) => write!(f, "ack: {lost}"),
            Self::Put(error) => write!(f, "ack: cannot put the item into the other queue: {error}"),
            Self::Core(error) => error.fmt(f),
        }
    }
}

impl StdError for AckError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Lost(lost) => Some(lost),
            Self::Put(error) => error.source(),
            Self::Core(error) => error.source(),
        }
    }
}

impl From<Lost> for AckError {
    fn from(lost: Lost) -> Self {
        Self::Lost(lost)
    }
}

impl InOperation for AckError {
    fn in_operation(self, operation: &'static str) -> Self {
        match self {
            Self::Core(error) => Self::Core(error.in_operation(operation)),
            other => other,
        }
    }
}

impl AckError {
    /// Returns whether the operation failed for a transient reason. The item is then handed out again, and
    /// the same call may succeed for its next delivery. False for a lost delivery.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Lost(_) => false,
            Self::Put(error) => error.is_retryable(),
            Self::Core(error) => error.is_retryable(),
        }
    }

    /// Returns whether the operation may have been applied.
    pub fn may_have_applied(&self) -> bool {
        matches!(self, Self::Core(error) if error.may_have_applied())
    }

    /// Returns the path that the error concerns, if it is known.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Lost(_) => None,
            Self::Put(error) => error.path(),
            Self::Core(error) => error.path(),
        }
    }
}

impl From<Error> for AckError {
    fn from(error: Error) -> Self {
        match error.kind() {
            ErrorKind::Lost(reason) => Self::Lost(Lost { reason }),
            _ => Self::Core(error),
        }
    }
}

impl From<AckError> for Error {
    fn from(error: AckError) -> Self {
        let kind = match &error {
            AckError::Lost(lost) => ErrorKind::Lost(lost.reason),
            AckError::Put(error) => kind_of_put(error),
            AckError::Core(error) => return error.clone(),
        };
        let (path, may_have_applied) = (error.path().map(str::to_owned), error.may_have_applied());
        Self::of_recipe(kind, "ack", error).at_path(path.as_deref()).maybe_applied(may_have_applied)
    }
}

/// Error of reading the next item, which changes nothing.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum PeekError {
    /// The item cannot be decoded. A consumer that cannot decode an item leaves the item to other consumers
    /// for a while, and then moves it to the dead letters.
    #[error("peek: cannot decode item {item:?}: {detail}")]
    Undecodable {
        /// Name of the item's node.
        item: String,
        /// Reason for which the item cannot be decoded.
        detail: String,
    },
    /// Another error.
    #[error(transparent)]
    Core(#[from] Error),
}

impl InOperation for PeekError {
    fn in_operation(self, operation: &'static str) -> Self {
        match self {
            Self::Core(error) => Self::Core(error.in_operation(operation)),
            other => other,
        }
    }
}

impl PeekError {
    /// Returns whether the same call may succeed later without any change by the caller.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Core(error) if error.is_retryable())
    }

    /// Returns whether a change may have been applied. False for every error of a read, which writes nothing.
    pub fn may_have_applied(&self) -> bool {
        matches!(self, Self::Core(error) if error.may_have_applied())
    }

    /// Returns the path that the error concerns, if it is known.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Core(error) => error.path(),
            Self::Undecodable { .. } => None,
        }
    }
}

impl From<PeekError> for Error {
    fn from(error: PeekError) -> Self {
        match error {
            PeekError::Core(error) => error,
            error @ PeekError::Undecodable { .. } => Self::of_recipe(ErrorKind::InvalidData, "peek", error),
        }
    }
}
