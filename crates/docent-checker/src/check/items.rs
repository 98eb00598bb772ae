use crate::analysis::Analysis;
use crate::journal_replay::Remover;
use crate::queues::{Item, Queues};
use crate::violation::{Found, Invariant, Violation};

/// **Items are kept**: an item that was put is there until a consumer that it was handed out to acknowledges
/// it, or it is moved to the dead letters; nothing else deletes it.
///
/// So each is acknowledged, present, or a dead letter at the end. An acknowledgement counts from its call on:
/// its reply may be lost, and its process may have died. One that is known to have failed counts for nothing.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    let queues = Queues::of(analysis);
    for item in queues.items.values() {
        let Some(gone) = item.node.gone else { continue };
        if is_moved(&queues, item, gone.when.zxid) || is_acknowledged(analysis, &queues, item) {
            continue;
        }
        let what = format!("item {} is gone, and nobody acknowledged it:", item.queued.item);
        let violation = Violation::new(Invariant::Q1, gone.when.at, what).path(&item.node.path);
        let remover = match gone.by {
            Remover::Session(session) => analysis.client_of(session),
            _ => None,
        };
        found.push(remover.into_iter().fold(violation, Violation::client));
    }
}

/// True when it became a dead letter in the same step.
fn is_moved(queues: &Queues<'_>, item: &Item<'_>, zxid: i64) -> bool {
    queues.letters.iter().any(|letter| letter.zxid == zxid && letter.item == item.queued.item)
}

fn is_acknowledged(analysis: &Analysis<'_>, queues: &Queues<'_>, item: &Item<'_>) -> bool {
    let Some(gone) = item.node.gone else { return false };
    let Remover::Session(session) = gone.by else { return false };
    let by = gone.when.at + analysis.tolerances().grain;
    queues.deliveries_of(&item.node.path).any(|delivered| {
        Some(delivered.client) == analysis.client_of(session)
            && delivered.acking.is_some_and(|acking| acking <= by)
            && delivered.acked.is_none_or(|(_, acked)| acked != Some(false))
    })
}

#[cfg(test)]
mod tests {
    use crate::history::{HistoryBuilder, QueueEvents};
    use crate::violation::Invariant::{Q1, Q5};

    #[test]
    fn an_item_goes_when_it_is_acknowledged() {
        let mut history = HistoryBuilder::new();
        let item = history.at(100).put(0, 7);
        let given = history.at(200).give(1, &item, 1);
        history.at(300).acking(&given).end_item(&given).at(302).acked(&given, Some(true)).end(1_000).holds();
    }

    #[test]
    fn an_item_may_go_by_an_acknowledgement_without_a_reply() {
        let mut history = HistoryBuilder::new();
        let item = history.at(100).put(0, 7);
        let given = history.at(200).give(1, &item, 1);
        history.at(300).acking(&given).end_item(&given).at(900).acked(&given, None);
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
        history.at(300).acking(&given).end_item(&given).at(302).acked(&given, Some(false));
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
        history.at(700).bury(1, &item, false).end(1_000).holds();
    }
}
