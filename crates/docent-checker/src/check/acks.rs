use crate::analysis::Analysis;
use crate::event::Settlement;
use crate::queues::{Delivered, Queues};
use crate::violation::{Found, Invariant, Violation};
use std::time::Duration;

/// **Acknowledgements** are exact, and so is every other way to settle a delivery.
///
/// - A settlement that succeeded deleted the item's node together with the delivery's own claim, in one
///   transaction between call and return. If that was requested, the transaction also created a dead letter
///   or put the item at another place.
/// - A settlement that definitely failed changed nothing.
/// - An item that was acknowledged or rejected is never handed out again.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    let queues = Queues::of(analysis);
    for delivered in &queues.deliveries {
        if let Some((at, what)) = wrong(analysis, &queues, delivered).or_else(|| again(&queues, delivered)) {
            let violation = Violation::new(Invariant::Q5, at, what);
            found.push(violation.client(delivered.client).path(delivered.node));
        }
    }
}

fn wrong(
    analysis: &Analysis<'_>,
    queues: &Queues<'_>,
    delivered: &Delivered<'_>,
) -> Option<(Duration, String)> {
    let ((at, outcome), (begun, way)) = delivered.settled.zip(delivered.settling)?;
    let grain = analysis.tolerances().grain;
    let item = queues.items.get(delivered.node)?;
    let deleted = item.node.deleted.map(|deleted| deleted.when);
    let done = item.ended_with().is_some_and(|(zxid, claim)| {
        claim.is_some_and(|claim| claim.created.zxid.unsigned_abs() == delivered.fence)
            && queues.settlement(item, zxid) == way
    });
    let (number, did) = (delivered.item, verb(way));
    match (outcome?, deleted) {
        (true, None) => Some((at, format!("item {number} was {did}, but still exists:"))),
        (true, Some(_)) if !done => {
            Some((at, format!("item {number} was {did}, but not by the claim of this delivery:")))
        }
        (true, Some(deleted)) if deleted.at + grain < begun || deleted.at > at + grain => {
            Some((at, format!("item {number} was not deleted while it was {did}:")))
        }
        (false, Some(_)) if done => Some((at, format!("item {number} was {did} by a failed call:"))),
        _ => None,
    }
}

fn verb(way: Settlement) -> &'static str {
    match way {
        Settlement::Ack => "acknowledged",
        Settlement::Reject => "rejected",
        Settlement::PutBack => "put back",
    }
}

/// Finds a delivery whose item had been acknowledged or rejected before it was claimed.
fn again(queues: &Queues<'_>, delivered: &Delivered<'_>) -> Option<(Duration, String)> {
    let others = queues.deliveries_of_item(delivered.item);
    let done = others.filter(|other| matches!(other.settled, Some((_, Some(true)))));
    let settled = done.filter(|other| other.settling.is_some_and(|(_, way)| way != Settlement::PutBack));
    let mut deletions = settled.filter_map(|other| queues.items.get(other.node)?.node.deleted);
    deletions
        .any(|deleted| deleted.when.zxid.unsigned_abs() < delivered.fence)
        .then(|| (delivered.at, format!("item {} was handed out after it was acknowledged:", delivered.item)))
}

#[cfg(test)]
mod tests {
    use crate::event::Settlement;
    use crate::history::{Given, HistoryBuilder, QueueEvents};
    use crate::violation::Invariant::Q5;

    fn given() -> (HistoryBuilder, Given) {
        let (mut history, given) = HistoryBuilder::of_delivery();
        history.at(300).acking(&given);
        (history, given)
    }

    #[test]
    fn an_acknowledgement_that_deletes_nothing_is_caught() {
        let (mut history, given) = given();
        history.at(310).settled(&given, Some(true)).delete_claim(&given).end(1_000).breaks(Q5);
    }

    #[test]
    fn a_failed_acknowledgement_may_delete_nothing() {
        let (mut history, given) = given();
        history.at(310).settled(&given, Some(false)).delete_claim(&given).end(1_000).holds();
    }

    #[test]
    fn an_acknowledgement_by_an_ended_claim_is_caught() {
        let (mut history, first) = given();
        history.delete_claim(&first);
        let second = history.at(303).give(2, &first.item, 2);
        history.at(305).acking(&second).end_item(&second).at(310).settled(&second, Some(true));
        history.clone().at(311).settled(&first, Some(false)).end(1_000).holds();
        history.at(311).settled(&first, Some(true)).end(1_000).breaks(Q5);
    }

    #[test]
    fn an_item_that_is_handed_out_again_is_caught() {
        let (mut history, first) = given();
        history.end_item(&first).at(310).settled(&first, Some(true));
        let again = history.at(400).put(0, 7);
        history.at(500).give(2, &again, 1);
        history.end(1_000).breaks_also(Q5);
    }

    #[test]
    fn an_item_that_is_put_back_is_handed_out_at_its_new_position() {
        let (mut history, given) = HistoryBuilder::of_delivery();
        history.at(300).settling(&given, Settlement::PutBack);
        let moved = history.clone().move_item(&given, "p80000005-");
        history.clone().end_item(&given).at(305).settled(&given, Some(true)).end(1_000).breaks_also(Q5);
        history.move_item(&given, "p80000005-");
        history.clone().at(305).settled(&given, Some(false)).end(1_000).breaks_also(Q5);
        history.at(305).settled(&given, Some(true)).at(400).give(2, &moved, 2);
        history.end(1_000).holds();
    }

    #[test]
    fn an_item_that_is_rejected_is_a_dead_letter() {
        let (mut history, given) = HistoryBuilder::of_delivery();
        history.at(300).settling(&given, Settlement::Reject);
        history.clone().reject_item(&given).at(305).settled(&given, Some(true)).end(1_000).holds();
        history.clone().reject_item(&given).at(305).settled(&given, Some(false)).end(1_000).breaks(Q5);
        history.end_item(&given).at(305).settled(&given, Some(true)).end(1_000).breaks_also(Q5);
    }
}
