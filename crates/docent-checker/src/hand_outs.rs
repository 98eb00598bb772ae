use crate::analysis::{Analysis, End};
use crate::journal_replay::NodeLife;
use crate::queues::{Delivered, Queues};
use std::collections::BTreeSet;

/// Hand-outs of an item by a transaction, wherever in its queue it was.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HandOuts {
    /// By the record: each was a claim of its own.
    pub(crate) handed: usize,
    /// Claims that are counted as hand-outs though nobody got the item, because the client died, was closed,
    /// lost its session or was cut off before it could take the count back.
    pub(crate) excused: usize,
}

impl HandOuts {
    /// The hand-outs by claims that were made by a transaction, that included, and were not ended by it.
    pub(crate) fn by(analysis: &Analysis<'_>, queues: &Queues<'_>, item: u64, zxid: i64) -> Self {
        let claimed = |delivered: &Delivered<'_>| match queues.claim_of(delivered) {
            Some((item, claim)) => item.claimed(claim),
            None => i64::try_from(delivered.fence).unwrap_or(i64::MAX),
        };
        let deliveries = queues.deliveries_of_item(item).filter(|delivered| claimed(delivered) <= zxid);
        let fences: BTreeSet<u64> = deliveries.map(|delivered| delivered.fence).collect();
        let excused = queues.nodes_of_item(item).map(|item| {
            let earlier = item.claims.iter().filter(|claim| {
                item.claimed(claim) < zxid && claim.gone.is_none_or(|gone| gone.when.zxid < zxid)
            });
            let nobodys = earlier.filter(|claim| !fences.contains(&claim.created.zxid.unsigned_abs()));
            nobodys.filter(|claim| item.counts(claim) && is_excused(analysis, claim)).count()
        });
        Self { handed: fences.len(), excused: excused.sum() }
    }
}

/// True when its client could not take the count of a claim back that it had made for nobody.
fn is_excused(analysis: &Analysis<'_>, claim: &NodeLife) -> bool {
    let Some(life) = analysis.client_of(claim.owner).and_then(|client| analysis.life(client)) else {
        return true;
    };
    let Some(gone) = claim.gone else { return true };
    let went = analysis.replay.sessions().get(&claim.owner).and_then(|session| session.ended);
    let reconnect = analysis.tolerances().reconnect;
    went.is_some_and(|(ended, _)| ended.zxid == gone.when.zxid)
        || analysis.end_of(claim, gone) == End::Others
        || !life.apart.spare(claim.created.at.saturating_sub(reconnect), gone.when.at)
}
