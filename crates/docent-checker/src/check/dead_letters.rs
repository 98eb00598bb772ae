use crate::analysis::Analysis;
use crate::event::Settlement;
use crate::hand_outs::HandOuts;
use crate::queue_item::Item;
use crate::queues::Queues;
use crate::run::{DeadReason, Decodable, Queued, QueuedAs};
use crate::violation::{Found, Invariant, Violation};
use std::collections::BTreeSet;

/// **Dead letters**:
///
/// - A dead letter is written in the transaction that deletes its item, once for each item.
/// - It has a reason: the item was handed out the maximum number of times (unreceived claims count as in Q4),
///   its consumer rejects it, or it cannot be decoded.
/// - An item is handed out only to clients that can decode it.
/// - An older client moves an item that only newer clients can decode only after it left the item to others
///   for long enough. The time starts when the item is put, and again at each hand-out.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    let queues = Queues::of(analysis);
    let mut seen = BTreeSet::new();
    for letter in &queues.letters {
        let of = |item: &&Item<'_>| {
            item.queued.item == letter.item
                && item.queued.queue == letter.queue
                && item.node.deleted.is_some_and(|deleted| deleted.when.zxid == letter.zxid)
        };
        let what = match queues.items.values().find(of) {
            _ if !seen.insert(letter.item) => "twice",
            None => "but its item was not deleted in that step",
            Some(item) if !has_reason(analysis, &queues, letter, item) => "without a reason",
            Some(_) => continue,
        };
        let at = analysis.replay.node_at(&letter.node, std::time::Duration::MAX);
        let at = at.map(|index| analysis.replay.nodes()[index].created.at).unwrap_or_default();
        let what = format!("item {} became a dead letter, {what}:", letter.item);
        found.push(Violation::new(Invariant::Q7, at, what).path(&letter.node));
    }
    for delivered in &queues.deliveries {
        let decodable = queues.items.get(delivered.node).map(|item| item.decodable);
        let is_wrong = match decodable {
            Some(Decodable::NoClient) => true,
            Some(Decodable::Newer) => !queues.newer.contains(&delivered.client),
            _ => false,
        };
        if is_wrong {
            let what = format!("item {} was handed out to a client that cannot decode it:", delivered.item);
            let violation = Violation::new(Invariant::Q7, delivered.at, what);
            found.push(violation.client(delivered.client).path(delivered.node));
        }
    }
}

fn has_reason(analysis: &Analysis<'_>, queues: &Queues<'_>, letter: &Queued, item: &Item<'_>) -> bool {
    let QueuedAs::DeadLetter { reason } = letter.kind else { return false };
    match reason {
        DeadReason::Undecodable => match item.decodable {
            Decodable::All => false,
            Decodable::Newer => was_left_to_newer_clients(analysis, queues, item),
            Decodable::NoClient => true,
        },
        DeadReason::TooManyDeliveries => {
            let most = queues.rules(analysis, &letter.queue).max_deliveries;
            let HandOuts { handed, excused } = HandOuts::by(analysis, queues, letter.item, letter.zxid);
            handed + excused >= most as usize
        }
        DeadReason::Rejected => {
            let claim = item.ended_with().and_then(|(_, claim)| claim);
            let fence = claim.map(|claim| claim.created.zxid.unsigned_abs());
            queues.deliveries_of(&item.node.path).any(|delivered| {
                Some(delivered.fence) == fence
                    && delivered.settling.is_some_and(|(_, way)| way == Settlement::Reject)
            })
        }
    }
}

/// Returns true if an item was not handed out for long enough before it was deleted.
fn was_left_to_newer_clients(analysis: &Analysis<'_>, queues: &Queues<'_>, item: &Item<'_>) -> bool {
    let Some(deleted) = item.node.deleted else { return true };
    // The claim of the client that moved the item is not a hand-out.
    let others = item.claims.iter().filter(|claim| claim.deleted.is_some_and(|end| end.when < deleted.when));
    let handed_out = others.filter(|claim| item.counts(claim)).filter_map(|claim| item.counted(claim));
    let since = handed_out.map(|counted| counted.at).max().unwrap_or(item.node.created.at);
    let patience = queues.rules(analysis, &item.queued.queue).undecodable_after;
    since + patience <= deleted.when.at + analysis.tolerances().grain
}

#[cfg(test)]
mod tests {
    use crate::event::{EventKind, Settlement};
    use crate::history::{HistoryBuilder, QueueEvents, Stored};
    use crate::journal::EndCause;
    use crate::run::DeadReason::{Rejected, TooManyDeliveries, Undecodable};
    use crate::violation::Invariant::Q7;

    /// An item that was handed out `times` times, and given back.
    fn tried(times: u32) -> (HistoryBuilder, Stored) {
        let mut history = HistoryBuilder::new();
        let item = history.at(100).put(0, 7);
        for count in 1..=times {
            let given = history.at(u64::from(count) * 200).give(1, &item, count);
            history.given_back(&given).delete_claim(&given);
        }
        history.at(900);
        (history, item)
    }

    #[test]
    fn an_item_that_was_handed_out_too_often_becomes_a_dead_letter() {
        let (mut history, item) = tried(2);
        history.bury(1, &item, TooManyDeliveries).end(1_000).holds();
    }

    #[test]
    fn an_item_that_becomes_a_dead_letter_too_early_is_caught() {
        let (mut history, item) = tried(1);
        history.bury(1, &item, TooManyDeliveries).end(1_000).breaks(Q7);
    }

    #[test]
    fn a_decodable_item_that_becomes_a_dead_letter_as_undecodable_is_caught() {
        let (mut history, item) = tried(1);
        history.bury(1, &item, Undecodable).end(1_000).breaks(Q7);
    }

    #[test]
    fn an_undecodable_item_is_handed_to_no_consumer() {
        let (mut history, item) = tried(0);
        history.undecodable(&item);
        history.clone().bury(1, &item, Undecodable).end(1_000).holds();
        history.give(1, &item, 1);
        history.end(1_000).breaks(Q7);
    }

    #[test]
    fn an_item_that_only_newer_clients_decode_is_left_to_them_for_long_enough() {
        let mut history = HistoryBuilder::new();
        let item = history.patient(2_000).at(100).put(0, 7);
        history.of_newer_kind(&item);
        history.clone().at(1_000).bury(1, &item, Undecodable).end(4_000).breaks(Q7);
        history.clone().at(2_200).bury(1, &item, Undecodable).end(4_000).holds();
        let take = history.at(1_500).take_newer(2, true);
        let given = history.give(2, &item, 1);
        history.end_take(2, take).given_back(&given).delete_claim(&given);
        history.clone().at(2_200).bury(1, &item, Undecodable).end(4_000).breaks(Q7);
        history.clone().at(3_600).bury(1, &item, Undecodable).end(4_000).holds();
        let take = history.at(3_000).take(3, true);
        history.give(3, &item, 2);
        history.end_take(3, take).end(4_000).breaks(Q7);
    }

    #[test]
    fn a_letter_whose_item_stays_is_caught() {
        let (mut history, item) = tried(2);
        history.letter(&item, TooManyDeliveries).end(1_000).breaks(Q7);
    }

    #[test]
    fn claims_that_no_caller_received_are_no_deliveries() {
        let (mut history, item) = tried(1);
        let take = history.at(5_000).take(1, true);
        history.claim(1, &item);
        history.end_take(1, take).at(5_010);
        history.clone().end_claim(1, &item).bury(1, &item, TooManyDeliveries).end(6_000).breaks(Q7);
        history.record(1, EventKind::Crashed).at(5_500).end_session(2, EndCause::Expired);
        history.bury(2, &item, TooManyDeliveries).end(6_000).holds();
    }

    #[test]
    fn only_an_item_that_a_consumer_rejects_is_rejected() {
        let (mut history, given) = HistoryBuilder::of_delivery();
        history.at(300);
        history.clone().settling(&given, Settlement::Reject).reject_item(&given).end(1_000).holds();
        history.clone().acking(&given).reject_item(&given).end(1_000).breaks(Q7);
        history.given_back(&given).delete_claim(&given).bury(1, &given.item, Rejected);
        history.end(1_000).breaks(Q7);
    }
}
