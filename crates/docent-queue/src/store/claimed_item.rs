use super::{OwnClaim, children_ever};
use crate::layout::Paths;
use docent_core::Node;
use docent_core::recipe::Hold;

/// An item that this process has claimed for a call.
#[derive(Debug)]
pub(crate) struct ClaimedItem {
    pub(crate) hold: Hold,
    pub(crate) name: String,
    /// Its node, as it was read after the claim.
    pub(crate) node: Node,
    /// True once it is handed out, which is counted.
    pub(crate) handed_out: bool,
    /// Number of hand-outs that were counted since the node was read.
    pub(crate) counted_since: u32,
    /// `None` for one under the lock of the ordered mode.
    pub(crate) own: Option<OwnClaim>,
}

impl ClaimedItem {
    /// Number of times it was handed out, with this one where that is counted already. `None` where nothing
    /// is counted.
    pub(crate) fn deliveries(&self, paths: &Paths) -> Option<u32> {
        paths.counts().then(|| {
            let base = paths.unframe(&self.node.data).map_or(0, |(base, _)| base);
            let counted = children_ever(&self.node.stat).saturating_add(self.counted_since);
            counted.saturating_add_signed(base)
        })
    }

    /// Number of times it was handed out before this one; 0 where nothing is counted.
    pub(crate) fn handed_out_before(&self, paths: &Paths) -> u32 {
        self.deliveries(paths).unwrap_or(0).saturating_sub(u32::from(self.handed_out))
    }
}
