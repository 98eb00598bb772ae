use docent_codec::CodecError;
use docent_core::{Error, ErrorKind, Lost};

/// Errors of putting items: nothing was put, except as [`Core`](Self::Core) says.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum PutError {
    /// The queue has as many items as it may have.
    #[error("put: the queue is full: {length} items are in it, and its capacity is {capacity}")]
    Full {
        /// Number of items in it.
        length: usize,
        /// Number of items it may have.
        capacity: usize,
    },
    /// The codec could not encode it.
    #[error("put: the item cannot be encoded: {0}")]
    Encode(CodecError),
    /// The codec could not read what it encoded: no consumer could. A number that is not finite is one, in
    /// JSON.
    #[error("put: the item cannot be read back once it is encoded: {0}")]
    Unreadable(CodecError),
    /// The numbers of the queue's items are nearly used up. [`Queue::reset`](crate::Queue::reset) once it is
    /// empty.
    #[error("put: the numbers of the queue's items are nearly used up")]
    SequenceExhausted,
    /// Anything else, such as `TooLarge` for an item that does not fit into a request.
    /// [`may_have_applied`](Error::may_have_applied) says whether the items may be in the queue.
    #[error(transparent)]
    Core(#[from] Error),
}

impl PutError {
    /// True when the same call may succeed later without anything being changed by the caller.
    pub fn is_retryable(&self) -> bool {
        match self {
            // Consumers make room.
            Self::Full { .. } => true,
            Self::Encode(_) | Self::Unreadable(_) | Self::SequenceExhausted => false,
            Self::Core(error) => error.is_retryable(),
        }
    }

    /// True when the items may be in the queue.
    pub fn may_have_applied(&self) -> bool {
        matches!(self, Self::Core(error) if error.may_have_applied())
    }

    /// The path that it is about, where that is known.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Core(error) => error.path(),
            _ => None,
        }
    }
}

/// Errors of ending a delivery: acknowledging it, giving it back, rejecting it. It was not done, or may not
/// have been.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum AckError {
    /// The delivery was lost before anything was written: another consumer has the item, or will have it.
    #[error("ack: {0}")]
    Lost(#[from] Lost),
    /// The item for another queue could not be put: nothing was written.
    #[error("ack: nothing was put, {0}")]
    Put(PutError),
    /// Anything else. [`may_have_applied`](Error::may_have_applied) says whether it may be done; if it is
    /// not, the item is back in the queue.
    #[error(transparent)]
    Core(Error),
}

impl AckError {
    /// True when it was not done for a reason that time mends: the item is handed out again, and the same
    /// call may succeed then. Not for a delivery that was lost.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Lost(_) => false,
            Self::Put(error) => error.is_retryable(),
            Self::Core(error) => error.is_retryable(),
        }
    }

    /// True when it may have been done.
    pub fn may_have_applied(&self) -> bool {
        matches!(self, Self::Core(error) if error.may_have_applied())
    }

    /// The path that it is about, where that is known.
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

/// Errors of looking at the next item. Looking changes nothing.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum PeekError {
    /// It cannot be decoded; the consumers that take it leave it to others for a while, and then move it to
    /// the dead letters.
    #[error("peek: item {item:?} cannot be decoded: {detail}")]
    Undecodable {
        /// The name of its node.
        item: String,
        /// The reason for which it cannot be decoded.
        detail: String,
    },
    /// Anything else.
    #[error(transparent)]
    Core(#[from] Error),
}

impl PeekError {
    /// True when the same call may succeed later without anything being changed by the caller.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Core(error) if error.is_retryable())
    }

    /// As the error of the read says, which writes nothing.
    pub fn may_have_applied(&self) -> bool {
        matches!(self, Self::Core(error) if error.may_have_applied())
    }

    /// The path that it is about, where that is known.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Core(error) => error.path(),
            Self::Undecodable { .. } => None,
        }
    }
}
