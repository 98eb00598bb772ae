/// Node below a service that cannot be shown as an instance, with the reason: invalid data, or a hook that
/// panicked.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
#[error("cannot read instance {id:?}: {reason}")]
#[non_exhaustive]
pub struct Unreadable {
    /// Name of the node.
    pub id: String,
    /// Reason, without any of the data itself.
    pub reason: String,
}
