use crate::layout::Paths;
use docent_core::recipe::Hold;
use docent_core::{Node, Stat};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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

/// Returns the number of children that a node ever had. For an item, this is the number of counted
/// deliveries: each created and deleted one child.
pub(crate) fn children_ever(node: &Stat) -> u32 {
    // `cversion` counts created and deleted children, so half of the sum is the number of claims (decision
    // 8).
    let children = u32::try_from(node.num_children).unwrap_or(u32::MAX);
    node.cversion.cast_unsigned().wrapping_add(children) / 2
}

/// Names of the items that this process has claimed. Other claims show that other processes take items as
/// well.
#[derive(Debug, Default, Clone)]
pub(crate) struct OwnClaims(Arc<Mutex<HashSet<String>>>);

impl OwnClaims {
    fn names(&self) -> MutexGuard<'_, HashSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a claim.
    pub(crate) fn note(&self, name: &str) -> OwnClaim {
        self.names().insert(name.to_owned());
        OwnClaim { claims: self.clone(), name: name.to_owned() }
    }

    /// Returns whether the claim belongs to this process.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.names().contains(name)
    }
}

/// Record that this process has claimed an item.
///
/// # On drop
/// The record is removed: if the claim still exists, it counts as another process's.
#[derive(Debug)]
pub(crate) struct OwnClaim {
    claims: OwnClaims,
    name: String,
}

impl Drop for OwnClaim {
    fn drop(&mut self) {
        self.claims.names().remove(&self.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_known_while_its_note_exists() {
        let claims = OwnClaims::default();
        let (one, other) = (claims.note("one"), claims.note("other"));
        assert!(claims.has("one") && claims.has("other") && !claims.has("third"));
        drop(one);
        assert!(!claims.has("one") && claims.has("other"));
        drop(other);
    }
}
