use std::time::Duration;

/// Key of client clones with the same settings that concern the same node.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ClientKey {
    pub(crate) operation_timeout: Duration,
    /// Generation that the clone is bound to, if any.
    pub(crate) bound: Option<u64>,
    /// Path of the node, with chroot and namespace.
    pub(crate) full: String,
}
