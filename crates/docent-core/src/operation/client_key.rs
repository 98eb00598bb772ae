use std::time::Duration;

/// Clones of a client with the same key have the same settings, and mean the same node.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ClientKey {
    pub(crate) operation_timeout: Duration,
    /// Generation that the clone is bound to, if to one.
    pub(crate) bound: Option<u64>,
    /// Path of the node, with chroot and namespace.
    pub(crate) full: String,
}
