/// Error of reading bytes as a record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The bytes end before the record does.
    #[error("record is truncated: the next field needs {needed} bytes, {left} are left")]
    Truncated {
        /// Number of bytes that the next field needs.
        needed: usize,
        /// Number of bytes that are left.
        left: usize,
    },
    /// Bytes are left after the end of the record.
    #[error("{0} bytes are left after the end of the record")]
    Trailing(usize),
    /// A length below −1.
    #[error("length {0} is below -1")]
    NegativeLength(i32),
    /// A frame length that is negative or above the limit.
    #[error("frame length {length} is outside 0..={limit}")]
    FrameLength {
        /// Announced length.
        length: i32,
        /// Maximum length that the receiver accepts.
        limit: usize,
    },
    /// A string that is not UTF-8, or null where a string is required.
    #[error("string is not valid UTF-8")]
    InvalidString,
    /// A null vector where a vector is required.
    #[error("vector is null")]
    NullVector,
    /// A boolean other than 0 and 1.
    #[error("boolean {0} is neither 0 nor 1")]
    InvalidBool(u8),
    /// An operation code that this codec does not know.
    #[error("operation code {0} is unknown")]
    UnknownOpCode(i32),
    /// An event type that this codec does not know.
    #[error("event type {0} is unknown")]
    UnknownEvent(i32),
    /// A kind or mode of watches that this codec does not know.
    #[error("watch kind or mode {0} is unknown")]
    UnknownWatch(i32),
}
