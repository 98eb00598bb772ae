use crate::analysis::Analysis;
use crate::journal_replay::{Moment, NodeLife};
use crate::queue_item::Item;
use crate::queues::Queues;
use crate::violation::{Found, Invariant, Violation};
use std::time::Duration;

/// **Strict order**: in ordered mode an item is counted as handed out only under the first ticket in the line
/// of the lock, from its time on, and only while no item is there that goes before it: not even to move it to
/// the dead letters.
///
/// An item that came, or whose time came, only a moment before may go before it: the holder had listed the
/// items by then. This cannot be where numbers alone tell the order. The clocks of processes agree with the
/// journal's.
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
    let mut line: Vec<_> = line.filter(|ticket| ticket.stands_at(counted.zxid)).collect();
    line.sort_unstable_by_key(|ticket| ticket.number);
    if let Some(first) = line.first().filter(|first| !std::ptr::eq(first.node, claim)) {
        return Some(("while another client has the lock:".to_owned(), Some(&first.node.path)));
    }
    let ahead = queues.items.values().find(|other| {
        other.queued.queue == item.queued.queue && goes_before(analysis, other, item, counted)
    })?;
    Some((
        format!("while item {} is there, which goes before it:", ahead.queued.item),
        Some(&ahead.node.path),
    ))
}

/// True when the holder had to know that `other` goes before `item`.
fn goes_before(analysis: &Analysis<'_>, other: &Item<'_>, item: &Item<'_>, counted: Moment) -> bool {
    let (created, gone) = (other.node.created, other.node.gone);
    if created.zxid >= counted.zxid || gone.is_some_and(|gone| gone.when.zxid <= counted.zxid) {
        return false;
    }
    let (place, behind) = (&other.place, &item.place);
    let by_number = place.priority == behind.priority && place.due.is_none() && behind.due.is_none();
    let known = match by_number {
        true => Duration::ZERO,
        false => created.at.max(place.due.unwrap_or_default()).saturating_add(patience(analysis)),
    };
    place.goes_before(behind) && known <= counted.at
}

/// Longest time from a listing to the hand-out of its first item.
fn patience(analysis: &Analysis<'_>) -> Duration {
    let tolerances = analysis.tolerances();
    tolerances.operation + tolerances.news + tolerances.lag * 2 + tolerances.scheduling
}

#[cfg(test)]
mod tests {
    use crate::history::{HistoryBuilder, QueueEvents, Stored};
    use crate::violation::Invariant::Q12;

    /// A queue in ordered mode with items 7 and 8.
    fn two() -> (HistoryBuilder, Stored, Stored) {
        let mut history = HistoryBuilder::new();
        history.ordered();
        let (first, second) = (history.at(100).put(0, 7), history.put(0, 8));
        (history, first, second)
    }

    #[test]
    fn items_are_handed_out_one_after_the_other() {
        let (mut history, first, second) = two();
        for (item, at) in [(&first, 200), (&second, 300)] {
            let given = history.at(at).give_locked(1, item, 1);
            history.at(at + 50).acking(&given).end_item(&given).settled(&given, Some(true));
        }
        history.end(1_000).holds();
    }

    #[test]
    fn the_second_before_the_first_is_caught_also_where_it_is_given_back() {
        let (mut history, _, second) = two();
        let given = history.at(200).give_locked(1, &second, 1);
        history.given_back(&given).delete_claim(&given).end(1_000).breaks(Q12);
    }

    #[test]
    fn one_that_comes_back_is_first_again() {
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
