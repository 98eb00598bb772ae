use super::{OwnClaim, children_ever};
use crate::layout::Paths;
use docent_core::Node;
use docent_core::recipe::Hold;

/// An item that this process has claimed for a call.
#[derive(Debug)]
pub(crate) struct ClaimedItem {
    pub(crate) hold: Hold,
    pub(crate) name: String,
    /// Node of the item, as read after the claim.
    pub(crate) node: Node,
    /// Whether the item was handed out, which is counted.
    pub(crate) handed_out: bool,
    /// Number of deliveries that were counted since the node was read.
    pub(crate) counted_since: u32,
    /// Record of the own claim; `None` for an item under the lock of the ordered mode.
    pub(crate) own: Option<OwnClaim>,
}

impl ClaimedItem {
    /// Returns the number of deliveries, including this one if it is already counted. Returns `None` if
    /// deliveries are not counted.
    pub(crate) fn deliveries(&self, paths: &Paths) -> Option<u32> {
        paths.counts().then(|| {
            let base = paths.unframe(&self.node.data).map_or(0, |(base, _)| base);
            let counted = children_ever(&self.node.stat).saturating_add(self.counted_since);
            counted.saturating_add_signed(base)
        })
    }

    /// Returns the number of earlier deliveries; 0 if deliveries are not counted.
    pub(crate) fn handed_out_before(&self, paths: &Paths) -> u32 {
        self.deliveries(paths).unwrap_or(0).saturating_sub(u32::from(self.handed_out))
    }
}
