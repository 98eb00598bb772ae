/// Node below a service that cannot be shown as an instance, with the reason: invalid data, or a hook that
/// panicked. Also a [rule](crate::RegistryLayout::Dubbo) that is invalid or cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
#[error("cannot read node {id:?}: {reason}")]
#[non_exhaustive]
pub struct Unreadable {
    /// Name of the node; of a rule, the path of its node.
    pub id: String,
    /// Reason, without any of the data itself.
    pub reason: String,
}
