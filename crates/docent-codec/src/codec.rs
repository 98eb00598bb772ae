use crate::CodecError;
use bytes::Bytes;

/// Codec that converts values to the data of nodes and back. [`Json`](crate::Json) is the default;
/// [`Raw`](crate::Raw) leaves bytes and text unchanged.
///
/// The codec encodes values that are written, and decodes bytes that any client may have written. Therefore
/// decoding must not use more memory than the size of the data justifies. A panic counts as an error.
///
/// Values that a caller awaits are encoded and decoded in that caller's task. Values that a view follows are
/// decoded on a thread for blocking code, so slow decoding delays only that view.
pub trait Codec<T>: Send + Sync + 'static {
    /// Encodes `value` as the data of a node.
    ///
    /// # Errors
    /// The reason for which the value cannot be encoded.
    fn encode(&self, value: &T) -> Result<Bytes, CodecError>;

    /// Decodes the value from the `data` of a node.
    ///
    /// # Errors
    /// The reason for which the data cannot be decoded.
    fn decode(&self, data: &Bytes) -> Result<T, CodecError>;
}
