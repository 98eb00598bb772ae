use crate::analysis::Analysis;
use crate::event::Settlement;
use crate::journal_replay::Remover;
use crate::queue_item::Item;
use crate::queues::Queues;
use crate::violation::{Found, Invariant, Violation};

/// **Items are kept**: an item that was put is there until a consumer that it was handed out to acknowledges
/// it, or it is moved to the dead letters; nothing else deletes it. It is moved to another place only by a
/// delivery that puts it there, or gives it back for later.
///
/// So each is acknowledged, present, or a dead letter at the end. An acknowledgement counts from its call on:
/// its reply may be lost, and its process may have died. One that is known to have failed counts for nothing.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    let queues = Queues::of(analysis);
    for item in queues.items.values() {
        let Some(gone) = item.node.gone else { continue };
        let way = queues.settlement(item, gone.when.zxid);
        // For the reasons of dead letters see Q7.
        if way == Settlement::Reject || is_asked_for(analysis, &queues, item, way) {
            continue;
        }
        let what = match way {
            Settlement::PutBack => "is at another place, and nobody put it there:",
            _ => "is gone, and nobody acknowledged it:",
        };
        let what = format!("item {} {what}", item.queued.item);
        let violation = Violation::new(Invariant::Q1, gone.when.at, what).path(&item.node.path);
        let remover = match gone.by {
            Remover::Session(session) => analysis.client_of(session),
            _ => None,
        };
        found.push(remover.into_iter().fold(violation, Violation::client));
    }
}

/// True when a delivery of its client was about to be settled in this way, or was given back.
fn is_asked_for(analysis: &Analysis<'_>, queues: &Queues<'_>, item: &Item<'_>, way: Settlement) -> bool {
    let Some(gone) = item.node.gone else { return false };
    let Remover::Session(session) = gone.by else { return false };
    let by = gone.when.at + analysis.tolerances().grain;
    queues.deliveries_of(&item.node.path).any(|delivered| {
        let settled = delivered.settling.is_some_and(|(begun, asked)| begun <= by && asked == way)
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
    fn an_item_goes_when_it_is_acknowledged() {
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
    fn an_item_may_go_by_an_acknowledgement_without_a_reply() {
        let mut history = HistoryBuilder::new();
        let item = history.at(100).put(0, 7);
        let given = history.at(200).give(1, &item, 1);
        history.at(300).acking(&given).end_item(&given).at(900).settled(&given, None);
        history.end(1_000).holds();
    }

    #[test]
    fn an_item_that_goes_before_it_was_worked_on_is_caught() {
        let mut history = HistoryBuilder::new();
        let item = history.at(100).put(0, 7);
        let given = history.at(200).give(1, &item, 1);
        history.at(202).end_item(&given).at(900).given_back(&given).end(1_000).breaks_also(Q1);
    }

    #[test]
    fn an_item_that_goes_by_an_acknowledgement_that_failed_is_caught() {
        let mut history = HistoryBuilder::new();
        let item = history.at(100).put(0, 7);
        let given = history.at(200).give(1, &item, 1);
        history.at(300).acking(&given).end_item(&given).at(302).settled(&given, Some(false));
        let history = history.end(1_000);
        history.breaks_also(Q1);
        history.breaks_also(Q5);
    }

    #[test]
    fn an_item_that_somebody_else_deletes_is_caught() {
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
    fn an_item_that_is_moved_and_that_nobody_put_back_is_caught() {
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
