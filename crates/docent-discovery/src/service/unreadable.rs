/// Node below a service that cannot be shown as an instance, with the reason: the fault of its data, or the
/// hook that panicked at it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
#[error("instance {id:?} cannot be read: {reason}")]
#[non_exhaustive]
pub struct Unreadable {
    /// The name of its node.
    pub id: String,
    /// The reason, without any of the data itself.
    pub reason: String,
}
