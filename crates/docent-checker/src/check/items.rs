use crate::analysis::Analysis;
use crate::event::Settlement;
use crate::journal_replay::Remover;
use crate::queue_item::Item;
use crate::queues::Queues;
use crate::violation::{Found, Invariant, Violation};

/// **No item is lost**: an item that was put exists until a consumer that received it acknowledges it, or
/// until it is moved to the dead letters. Nothing else deletes it. Only a delivery that puts the item back,
/// or gives it back for later, moves it to another place.
///
/// So at the end each item is acknowledged, present, or a dead letter. An acknowledgement counts from its
/// call on, because its reply may be lost and its process may have died. An acknowledgement that definitely
/// failed does not count.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    let queues = Queues::of(analysis);
    for item in queues.items.values() {
        let Some(deleted) = item.node.deleted else { continue };
        let way = queues.settlement(item, deleted.when.zxid);
        // Q7 checks the reasons of dead letters.
        if way == Settlement::Reject || is_requested(analysis, &queues, item, way) {
            continue;
        }
        let what = match way {
            Settlement::PutBack => "was moved without a delivery that put it back:",
            _ => "was deleted without an acknowledgement:",
        };
        let what = format!("item {} {what}", item.queued.item);
        let violation = Violation::new(Invariant::Q1, deleted.when.at, what).path(&item.node.path);
        let remover = match deleted.by {
            Remover::Session(session) => analysis.client_of(session),
            _ => None,
        };
        found.push(remover.into_iter().fold(violation, Violation::client));
    }
}

/// Returns true if a delivery of the remover was about to be settled in this way, or was given back.
fn is_requested(analysis: &Analysis<'_>, queues: &Queues<'_>, item: &Item<'_>, way: Settlement) -> bool {
    let Some(deleted) = item.node.deleted else { return false };
    let Remover::Session(session) = deleted.by else { return false };
    let by = deleted.when.at + analysis.tolerances().grain;
    queues.deliveries_of(&item.node.path).any(|delivered| {
        let settled = delivered.settling.is_some_and(|(begun, requested)| begun <= by && requested == way)
            && delivered.settled.is_none_or(|(_, settled)| settled != Some(false));
        let given_back = way == Settlement::PutBack && delivered.given_back.is_some();
        Some(delivered.client) == analysis.client_of(session) && (settled || given_back)
    })
}

#[cfg(test)]
mod tests {
    use crate::event::Settlement;
    use crate::history::{HistoryBuilder, QueueEvents};
    use crate::run::DeadReason;
    use crate::violation::Invariant::{Q1, Q5};

    #[test]
    fn an_item_is_deleted_when_it_is_acknowledged() {
        let mut history = HistoryBuilder::new();
        let item = history.at(100).put(0, 7);
        let given = history.at(200).give(1, &item, 1);
        history
            .at(300)
            .acking(&given)
            .end_item(&given)
            .at(302)
            .settled(&given, Some(true))
            .end(1_000)
            .holds();
    }

    #[test]
    fn an_item_may_be_deleted_by_an_acknowledgement_without_a_reply() {
        let mut history = HistoryBuilder::new();
        let item = history.at(100).put(0, 7);
        let given = history.at(200).give(1, &item, 1);
        history.at(300).acking(&given).end_item(&given).at(900).settled(&given, None);
        history.end(1_000).holds();
    }

    #[test]
    fn an_item_that_is_deleted_before_it_was_delivered_is_caught() {
        let mut history = HistoryBuilder::new();
        let item = history.at(100).put(0, 7);
        let given = history.at(200).give(1, &item, 1);
        history.at(202).end_item(&given).at(900).given_back(&given).end(1_000).breaks_also(Q1);
    }

    #[test]
    fn an_item_that_is_deleted_by_a_failed_acknowledgement_is_caught() {
        let mut history = HistoryBuilder::new();
        let item = history.at(100).put(0, 7);
        let given = history.at(200).give(1, &item, 1);
        history.at(300).acking(&given).end_item(&given).at(302).settled(&given, Some(false));
        let history = history.end(1_000);
        history.breaks_also(Q1);
        history.breaks_also(Q5);
    }

    #[test]
    fn an_item_that_another_client_deletes_is_caught() {
        let mut history = HistoryBuilder::new();
        let item = history.at(100).put(0, 7);
        history.at(300).delete_path(&item.node, 3).end(1_000).breaks(Q1);
    }

    #[test]
    fn an_item_that_becomes_a_dead_letter_is_kept() {
        let mut history = HistoryBuilder::new();
        let item = history.at(100).put(0, 7);
        for count in 1..=2 {
            let given = history.at(200 * count).give(1, &item, count.try_into().unwrap());
            history.at(200 * count + 50).given_back(&given).delete_claim(&given);
        }
        history.at(700).bury(1, &item, DeadReason::TooManyDeliveries).end(1_000).holds();
    }

    #[test]
    fn an_item_that_is_moved_without_being_put_back_is_caught() {
        let (mut history, given) = HistoryBuilder::of_delivery();
        let settling = |way| history.clone().at(300).settling(&given, way).clone();
        settling(Settlement::PutBack).clone().end_item(&given).end(1_000).breaks(Q1);
        let mut wrong = settling(Settlement::Ack);
        wrong.move_item(&given, "");
        wrong.end(1_000).breaks(Q1);
        let mut right = settling(Settlement::PutBack);
        right.move_item(&given, "");
        right.end(1_000).holds();
        history.move_item(&given, "");
        history.end(1_000).breaks(Q1);
    }
}
