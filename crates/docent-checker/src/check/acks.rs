use crate::analysis::Analysis;
use crate::queues::{Delivered, Queues};
use crate::violation::{Found, Invariant, Violation};
use std::time::Duration;

/// **Acknowledgements** are exact: one that succeeded deleted the item together with the delivery's own
/// claim, in one step between call and return; one that surely failed deleted nothing. An item that was
/// acknowledged is never handed out again.
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
    let ((at, outcome), acking) = delivered.acked.zip(delivered.acking)?;
    let grain = analysis.tolerances().grain;
    let item = queues.items.get(delivered.node)?;
    let gone = item.node.gone.map(|gone| gone.when);
    let ended = item.ended_with();
    let own = ended
        .and_then(|(_, claim)| claim)
        .is_some_and(|claim| claim.created.zxid.unsigned_abs() == delivered.fence);
    let moved = ended.is_some_and(|(zxid, _)| queues.letters.iter().any(|letter| letter.zxid == zxid));
    let number = delivered.item;
    match (outcome?, gone) {
        (true, None) => Some((at, format!("item {number} was acknowledged and is still there:"))),
        (true, Some(_)) if !own => {
            Some((at, format!("item {number} was acknowledged by a delivery that did not delete it:")))
        }
        (true, Some(gone)) if gone.at + grain < acking || gone.at > at + grain => {
            Some((at, format!("item {number} was not deleted while it was acknowledged:")))
        }
        (false, Some(_)) if own && !moved => {
            Some((at, format!("item {number} was deleted by an acknowledgement that failed:")))
        }
        _ => None,
    }
}

/// Its item had been acknowledged before it was claimed.
fn again(queues: &Queues<'_>, delivered: &Delivered<'_>) -> Option<(Duration, String)> {
    let others = queues.deliveries_of_item(delivered.item);
    let acked = others.filter(|other| matches!(other.acked, Some((_, Some(true)))));
    let mut gone = acked.filter_map(|other| queues.items.get(other.node)?.node.gone);
    gone.any(|gone| gone.when.zxid.unsigned_abs() < delivered.fence)
        .then(|| (delivered.at, format!("item {} was handed out after it was acknowledged:", delivered.item)))
}

#[cfg(test)]
mod tests {
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
        history.at(310).acked(&given, Some(true)).delete_claim(&given).end(1_000).breaks(Q5);
    }

    #[test]
    fn an_acknowledgement_that_failed_and_deletes_nothing_is_none() {
        let (mut history, given) = given();
        history.at(310).acked(&given, Some(false)).delete_claim(&given).end(1_000).holds();
    }

    #[test]
    fn an_acknowledgement_by_a_claim_that_is_over_is_caught() {
        let (mut history, first) = given();
        history.delete_claim(&first);
        let second = history.at(303).give(2, &first.item, 2);
        history.at(305).acking(&second).end_item(&second).at(310).acked(&second, Some(true));
        history.clone().at(311).acked(&first, Some(false)).end(1_000).holds();
        history.at(311).acked(&first, Some(true)).end(1_000).breaks(Q5);
    }

    #[test]
    fn an_item_that_is_handed_out_again_is_caught() {
        let (mut history, first) = given();
        history.end_item(&first).at(310).acked(&first, Some(true));
        let again = history.at(400).put(0, 7);
        history.at(500).give(2, &again, 1);
        history.end(1_000).breaks_also(Q5);
    }
}
