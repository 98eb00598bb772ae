use crate::store::LocalClaim;
use docent_core::recipe::Hold;

/// An item that was taken and not looked into yet.
#[derive(Debug)]
pub(crate) struct ClaimedItem {
    // Dropped in this order: once the item is not held any more it may be claimed again.
    pub(crate) guard: Hold,
    pub(crate) mine: LocalClaim,
    /// As it is in the node.
    pub(crate) node: bytes::Bytes,
    /// Number of times it was handed out, this one included, where that is counted.
    pub(crate) deliveries: Option<u32>,
}
