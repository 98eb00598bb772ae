use crate::analysis::{Analysis, End};
use crate::journal_replay::NodeLife;
use crate::queue_item::Item;
use crate::queues::Queues;
use crate::violation::{Found, Invariant, Violation};

/// **No claim without an item**: a claim is created for an existing item, and deleted no later than the
/// transaction that deletes the item.
///
/// **One proof at a time**: when a client gives up a claim, the same transaction deletes the proof. An item
/// is handed out only after the proofs of earlier claims were deleted.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    let queues = Queues::of(analysis);
    for claim in &queues.strays {
        found.push(violation(claim, "was created for an item that does not exist:"));
    }
    for item in queues.items.values() {
        let left = item.claims.iter().filter(|claim| outlives(claim, item));
        found.extend(left.map(|claim| violation(claim, "was left behind by its item:")));
        for claim in &item.claims {
            let left = item.proofs_of(claim).filter(|proof| remains_after(analysis, item, claim, proof));
            found.extend(left.map(|proof| violation(proof, "was left behind by its claim:")));
        }
    }
    for delivered in &queues.deliveries {
        let Some((item, claim)) = queues.claim_of(delivered) else { continue };
        let grain = analysis.tolerances().grain;
        let older = item.proofs.iter().filter(|proof| {
            proof.created.zxid < claim.created.zxid
                && proof.deleted.is_none_or(|deleted| deleted.when.at > delivered.at + grain)
        });
        found.extend(older.map(|proof| violation(proof, "still exists while its item is handed out again:")));
    }
}

/// Returns true for a proof that exists after its client gave the claim up.
///
/// A client does not give a claim up if it deletes the claim together with the proof of its own earlier
/// claim, which another client had deleted: the servers cannot tell these two claims apart (decision 28).
fn remains_after(analysis: &Analysis<'_>, item: &Item<'_>, claim: &NodeLife, proof: &NodeLife) -> bool {
    claim.deleted.is_some_and(|deleted| {
        let ends_with_it =
            |other: &&NodeLife| other.deleted.is_some_and(|end| end.when.zxid == deleted.when.zxid);
        let is_earlier = |other: &NodeLife| other.created.zxid < claim.created.zxid;
        analysis.end_of(claim, deleted) == End::Own
            && !item.proofs.iter().copied().filter(ends_with_it).any(is_earlier)
            && proof.created.zxid < deleted.when.zxid
            && proof.deleted.is_none_or(|end| end.when.zxid > deleted.when.zxid)
    })
}

/// Returns true if a claim existed after its item was deleted.
fn outlives(claim: &NodeLife, item: &Item<'_>) -> bool {
    let zxid = |deleted: Option<crate::journal_replay::Deletion>| {
        deleted.map_or(i64::MAX, |deleted| deleted.when.zxid)
    };
    claim.created.zxid > zxid(item.node.deleted) || zxid(claim.deleted) > zxid(item.node.deleted)
}

fn violation(node: &NodeLife, what: &str) -> Violation {
    Violation::new(Invariant::Q10, node.created.at, format!("a node {what}")).path(&node.path)
}

#[cfg(test)]
mod tests {
    use crate::history::{HistoryBuilder, QueueEvents};
    use crate::journal::EndCause;
    use crate::violation::Invariant::Q10;

    #[test]
    fn a_claim_is_deleted_with_its_item_or_before_it() {
        let (mut history, given) = HistoryBuilder::of_delivery();
        history.at(300).acking(&given);
        history.clone().end_item(&given).at(302).settled(&given, Some(true)).end(1_000).holds();
        history.clone().delete_claim(&given).end(1_000).holds();
        history.delete_path(&given.item.node, 2).at(302).end_session(2, EndCause::Closed);
        history.end(1_000).breaks_also(Q10);
    }

    #[test]
    fn a_claim_of_a_missing_item_is_caught() {
        let (mut history, given) = HistoryBuilder::of_delivery();
        history.at(300).acking(&given).end_item(&given).at(302).settled(&given, Some(true));
        let take = history.at(400).take(2, true);
        let claim = history.claim_uncounted(2, &given.item);
        history.at(402).delete_path(&claim, 3).end_take(2, take).end(1_000).breaks(Q10);
    }

    #[test]
    fn a_proof_is_deleted_with_its_claim() {
        let (mut history, given) = HistoryBuilder::of_delivery();
        history.at(300).given_back(&given).delete_path(&given.claim(), 2).at(301).evict(&given);
        history.end(1_000).breaks(Q10);
    }

    #[test]
    fn a_claim_may_be_deleted_with_the_proof_of_an_earlier_claim_of_its_client() {
        let (mut history, first) = HistoryBuilder::of_delivery();
        // An operator deletes the claim. The client claims the item again before it learns of the deletion.
        history.at(300).delete_path(&first.claim(), 3);
        history.at(310).given_back(&first).claim(1, &first.item);
        history.at(320).delete_claim_late(&first).at(330).evict(&first);
        history.end(1_000).holds();
    }

    #[test]
    fn an_item_that_is_handed_out_while_an_earlier_proof_exists_is_caught() {
        let (mut history, first) = HistoryBuilder::of_delivery();
        // An operator deletes the claim.
        history.at(300).delete_path(&first.claim(), 1);
        let mut evicted = history.clone();
        evicted.at(310).evict(&first).at(320).give(2, &first.item, 2);
        evicted.end(1_000).holds();
        history.at(320).give(2, &first.item, 2);
        history.at(400).evict(&first).end(1_000).breaks(Q10);
    }
}
