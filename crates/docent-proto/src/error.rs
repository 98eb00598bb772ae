/// Errors of reading bytes as a record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The record goes on after the bytes end.
    #[error("record needs {needed} more bytes, {left} are left")]
    Truncated {
        /// Bytes the next field needs.
        needed: usize,
        /// Bytes that are left.
        left: usize,
    },
    /// Bytes are left after the record ended.
    #[error("{0} bytes are left after the end of the record")]
    Trailing(usize),
    /// A length below −1.
    #[error("length {0} is below -1")]
    NegativeLength(i32),
    /// A frame with a length below zero or above the limit.
    #[error("frame length {length} is outside 0..={limit}")]
    FrameLength {
        /// The length the peer announced.
        length: i32,
        /// The most this end accepts.
        limit: usize,
    },
    /// A string that is not UTF-8, or null where a string is required.
    #[error("string is not valid UTF-8")]
    InvalidString,
    /// A vector that is null where one is required.
    #[error("vector is null")]
    NullVector,
    /// A truth value other than 0 and 1.
    #[error("boolean {0} is neither 0 nor 1")]
    InvalidBool(u8),
    /// An operation this codec does not know.
    #[error("operation code {0} is unknown")]
    UnknownOpCode(i32),
    /// An event type this codec does not know.
    #[error("event type {0} is unknown")]
    UnknownEvent(i32),
    /// A kind or mode of watches this codec does not know.
    #[error("kind or mode {0} of a watch is unknown")]
    UnknownWatch(i32),
}
