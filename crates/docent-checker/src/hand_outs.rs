use crate::analysis::{Analysis, End};
use crate::journal_replay::NodeLife;
use crate::queues::{Delivered, Queues};
use std::collections::BTreeSet;

/// How often an item was handed out up to a transaction, from any of its nodes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HandOuts {
    /// Number of recorded deliveries, each with a separate claim.
    pub(crate) handed: usize,
    /// Number of claims that count as hand-outs although no consumer received the item.
    ///
    /// The client of such a claim crashed, was closed, lost its session or was cut off before it could undo
    /// the count.
    pub(crate) excused: usize,
}

impl HandOuts {
    /// The hand-outs by claims that were created by the transaction `zxid` or earlier. An excused claim must
    /// have been created before `zxid`, and if it ended, it must have ended before `zxid`.
    pub(crate) fn by(analysis: &Analysis<'_>, queues: &Queues<'_>, item: u64, zxid: i64) -> Self {
        let claimed = |delivered: &Delivered<'_>| match queues.claim_of(delivered) {
            Some((item, claim)) => item.claimed(claim),
            None => i64::try_from(delivered.fence).unwrap_or(i64::MAX),
        };
        let deliveries = queues.deliveries_of_item(item).filter(|delivered| claimed(delivered) <= zxid);
        let fences: BTreeSet<u64> = deliveries.map(|delivered| delivered.fence).collect();
        let excused = queues.nodes_of_item(item).map(|item| {
            let earlier = item.claims.iter().filter(|claim| {
                item.claimed(claim) < zxid && claim.deleted.is_none_or(|deleted| deleted.when.zxid < zxid)
            });
            let nobodys = earlier.filter(|claim| !fences.contains(&claim.created.zxid.unsigned_abs()));
            nobodys.filter(|claim| item.counts(claim) && is_excused(analysis, claim)).count()
        });
        Self { handed: fences.len(), excused: excused.sum() }
    }
}

/// Returns true if the client could not undo the count of a claim that no consumer received.
fn is_excused(analysis: &Analysis<'_>, claim: &NodeLife) -> bool {
    let Some(life) = analysis.client_of(claim.owner).and_then(|client| analysis.life(client)) else {
        return true;
    };
    let Some(deleted) = claim.deleted else { return true };
    let session_end = analysis.replay.sessions().get(&claim.owner).and_then(|session| session.ended);
    let reconnect = analysis.tolerances().reconnect;
    session_end.is_some_and(|(ended, _)| ended.zxid == deleted.when.zxid)
        || analysis.end_of(claim, deleted) == End::ThirdParty
        || !life.apart.spare(claim.created.at.saturating_sub(reconnect), deleted.when.at)
}
