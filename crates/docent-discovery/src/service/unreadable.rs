/// Node below a service that cannot be shown as an instance, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
#[error("instance {id:?} cannot be read: {reason}")]
#[non_exhaustive]
pub struct Unreadable {
    /// The name of its node.
    pub id: String,
    /// The fault of the data, without any of the data itself.
    pub reason: String,
}
