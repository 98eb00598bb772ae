use docent_codec::CodecError;
use docent_core::{Error, ErrorKind, Lost};

/// Errors of putting items: nothing was put, except as [`Core`](Self::Core) says.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum PutError {
    /// The queue has as many items as it may have.
    #[error("the queue is full: {length} items are in it, and its capacity is {capacity}")]
    Full {
        /// Number of items in it.
        length: usize,
        /// Number of items it may have.
        capacity: usize,
    },
    /// The item is larger than the servers take.
    #[error("an item of {size} bytes must be at most {limit} bytes")]
    TooLarge {
        /// Its bytes, encoded.
        size: usize,
        /// The most that fits.
        limit: usize,
    },
    /// The codec could not encode it.
    #[error("the item cannot be encoded: {0}")]
    Encode(CodecError),
    /// The numbers of the queue's items are nearly used up. [`Queue::reset`](crate::Queue::reset) once it is
    /// empty.
    #[error("the numbers of the queue's items are nearly used up")]
    SequenceExhausted,
    /// Anything else. [`may_have_applied`](Error::may_have_applied) says whether the items may be in the
    /// queue.
    #[error(transparent)]
    Core(#[from] Error),
}

/// Errors of acknowledging an item: it was not acknowledged, or may not have been.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum AckError {
    /// The delivery had been lost: the item is, or will be, somebody else's. Nothing was written.
    #[error(transparent)]
    Lost(#[from] Lost),
    /// Anything else. [`may_have_applied`](Error::may_have_applied) says whether it may be acknowledged; if
    /// it is not, the item is back in the queue.
    #[error(transparent)]
    Core(Error),
}

impl From<Error> for AckError {
    fn from(error: Error) -> Self {
        match error.kind() {
            ErrorKind::Lost(reason) => Self::Lost(Lost { reason }),
            _ => Self::Core(error),
        }
    }
}

/// Errors of looking at the next item.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum PeekError {
    /// It cannot be decoded; the consumer that takes it moves it to the dead letters.
    #[error("item {item:?} cannot be decoded: {detail}")]
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
