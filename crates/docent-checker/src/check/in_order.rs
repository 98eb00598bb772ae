use crate::analysis::Analysis;
use crate::journal_replay::{Moment, NodeLife};
use crate::queue_item::Item;
use crate::queues::Queues;
use crate::violation::{Found, Invariant, Violation};
use std::time::Duration;

/// **Strict order**: in ordered mode an item is counted as handed out only under the first ticket in the line
/// of the lock. Its time must have come, and no preceding item may exist. This also applies to hand-outs that
/// only move the item to the dead letters.
///
/// A preceding item may be missed if it was put, or became due, only a moment before, because the holder had
/// already listed the items. This is impossible if only numbers determine the order. The clocks of processes
/// agree with the journal's.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    let queues = Queues::of(analysis);
    for item in queues.items.values().filter(|item| item.ordered) {
        for claim in &item.claims {
            let Some(counted) = item.counted(claim) else { continue };
            if let Some((what, other)) = wrong(analysis, &queues, item, (claim, counted)) {
                let what = format!("item {} was handed out {what}", item.queued.item);
                let violation = Violation::new(Invariant::Q12, counted.at, what).path(&item.node.path);
                let violation = other.into_iter().fold(violation, Violation::path);
                found.push(analysis.client_of(claim.owner).into_iter().fold(violation, Violation::client));
            }
        }
    }
}

/// Description of a hand-out that is wrong, and the path of the node that shows it.
fn wrong<'s>(
    analysis: &Analysis<'_>,
    queues: &'s Queues<'_>,
    item: &Item<'_>,
    (claim, counted): (&NodeLife, Moment),
) -> Option<(String, Option<&'s str>)> {
    if let Some(due) = item.place.due.filter(|due| counted.at + analysis.tolerances().grain < *due) {
        return Some((format!("{:?} before its time:", due - counted.at), None));
    }
    let line = queues.tickets.iter().filter(|ticket| ticket.queue == item.queued.queue);
    let mut line: Vec<_> = line.filter(|ticket| ticket.exists_at(counted.zxid)).collect();
    line.sort_unstable_by_key(|ticket| ticket.number);
    if let Some(first) = line.first().filter(|first| !std::ptr::eq(first.node, claim)) {
        return Some(("while another client has the lock:".to_owned(), Some(&first.node.path)));
    }
    let ahead = queues.items.values().find(|other| {
        other.queued.queue == item.queued.queue && goes_before(analysis, other, item, counted)
    })?;
    Some((
        format!("while item {} still exists, which precedes it:", ahead.queued.item),
        Some(&ahead.node.path),
    ))
}

/// Returns true if the holder had to know that `other` precedes `item`.
fn goes_before(analysis: &Analysis<'_>, other: &Item<'_>, item: &Item<'_>, counted: Moment) -> bool {
    let (created, deleted) = (other.node.created, other.node.deleted);
    if created.zxid >= counted.zxid || deleted.is_some_and(|deleted| deleted.when.zxid <= counted.zxid) {
        return false;
    }
    let (place, behind) = (&other.place, &item.place);
    let by_number = place.priority == behind.priority && place.due.is_none() && behind.due.is_none();
    let known_at = match by_number {
        true => Duration::ZERO,
        false => created.at.max(place.due.unwrap_or_default()).saturating_add(patience(analysis)),
    };
    place.goes_before(behind) && known_at <= counted.at
}

/// Longest time from a listing to the hand-out of its first item.
fn patience(analysis: &Analysis<'_>) -> Duration {
    let tolerances = analysis.tolerances();
    tolerances.operation + tolerances.notification + tolerances.lag * 2 + tolerances.scheduling
}

#[cfg(test)]
mod tests {
    use crate::history::{HistoryBuilder, QueueEvents, Stored};
    use crate::violation::Invariant::Q12;

    /// A queue in ordered mode with the items 7 and 8.
    fn two() -> (HistoryBuilder, Stored, Stored) {
        let mut history = HistoryBuilder::new();
        history.ordered();
        let (first, second) = (history.at(100).put(0, 7), history.put(0, 8));
        (history, first, second)
    }

    #[test]
    fn items_are_handed_out_one_at_a_time() {
        let (mut history, first, second) = two();
        for (item, at) in [(&first, 200), (&second, 300)] {
            let given = history.at(at).give_locked(1, item, 1);
            history.at(at + 50).acking(&given).end_item(&given).settled(&given, Some(true));
        }
        history.end(1_000).holds();
    }

    #[test]
    fn a_second_item_before_the_first_is_caught_even_if_it_is_given_back() {
        let (mut history, _, second) = two();
        let given = history.at(200).give_locked(1, &second, 1);
        history.given_back(&given).delete_claim(&given).end(1_000).breaks(Q12);
    }

    #[test]
    fn an_item_that_is_given_back_is_first_again() {
        let (mut history, first, second) = two();
        let given = history.at(200).give_locked(1, &first, 1);
        history.given_back(&given).delete_claim(&given);
        let again = history.clone().at(300).give_locked(2, &first, 2);
        history.clone().end(1_000).holds();
        assert_eq!(again.item.item, 7);
        let given = history.at(300).give_locked(2, &second, 1);
        history.given_back(&given).delete_claim(&given).end(1_000).breaks(Q12);
    }

    #[test]
    fn a_hand_out_under_a_ticket_that_is_not_the_first_is_caught() {
        let (mut history, first, second) = two();
        let held = history.at(200).give_locked(1, &first, 1);
        history.acking(&held);
        let mut wrong = history.clone();
        wrong.give_locked(2, &second, 1);
        wrong.end(1_000).breaks_also(Q12);
    }
}
