use crate::CodecError;
use bytes::Bytes;

/// Codec that makes values into the data of nodes, and back. [`Json`](crate::Json) is the default;
/// [`Raw`](crate::Raw) leaves bytes and text as they are.
///
/// It is called with values when they are written, and with bytes that anybody may have written when they
/// arrive: it must not take more memory than the data calls for. A panic counts as a refusal.
///
/// Values that a caller awaits are encoded and decoded in that caller's task. Values that a view follows are
/// decoded on a thread for blocking code: one that takes long there holds up that view alone.
pub trait Codec<T>: Send + Sync + 'static {
    /// The data of a node for `value`.
    ///
    /// # Errors
    /// Why it has none.
    fn encode(&self, value: &T) -> Result<Bytes, CodecError>;

    /// The value of a node with `data`.
    ///
    /// # Errors
    /// Why there is none.
    fn decode(&self, data: &Bytes) -> Result<T, CodecError>;
}
