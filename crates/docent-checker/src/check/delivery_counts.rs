use crate::analysis::Analysis;
use crate::hand_outs::HandOuts;
use crate::queues::Queues;
use crate::violation::{Found, Invariant, Violation};

/// **Counts**: a delivery reports how often its item was handed out, including this time, and no item is
/// handed out more often than the queue permits.
///
/// The reported number may be higher only by unreceived claims whose client died, was closed, lost its
/// session or was cut off before it could undo the count.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    let queues = Queues::of(analysis);
    for delivered in &queues.deliveries {
        // Q6 reports deliveries without a claim.
        let Some((item, claim)) = queues.claim_of(delivered) else { continue };
        let HandOuts { handed, excused } =
            HandOuts::by(analysis, &queues, delivered.item, item.claimed(claim));
        let most = queues.rules(analysis, &item.queued.queue).max_deliveries;
        let reported = delivered.count.map(|count| count as usize);
        let what = if reported.is_none_or(|reported| reported < handed || reported > handed + excused) {
            let excuse = format!("{excused} unreceived claims may count");
            format!("delivery {handed} of item {} reports {reported:?}, and {excuse}:", delivered.item)
        } else if handed > most as usize {
            format!("item {} was handed out {handed} times, but {most} are permitted:", delivered.item)
        } else {
            continue;
        };
        found.push(
            Violation::new(Invariant::Q4, delivered.at, what).client(delivered.client).path(&item.node.path),
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::event::{EventKind, Settlement};
    use crate::history::{HistoryBuilder, QueueEvents, Stored};
    use crate::journal::EndCause;
    use crate::violation::Invariant::Q4;

    fn handed_out(times: u32, reported_count: impl Fn(u32) -> u32) -> HistoryBuilder {
        let mut history = HistoryBuilder::new();
        let item = history.at(100).put(0, 7);
        for count in 1..=times {
            let given = history.at(u64::from(count) * 200).give(1, &item, reported_count(count));
            history.given_back(&given).delete_claim(&given);
        }
        history.end(2_000)
    }

    #[test]
    fn deliveries_are_counted() {
        handed_out(2, |count| count).holds();
        handed_out(2, |_| 1).breaks(Q4);
    }

    #[test]
    fn an_item_that_is_handed_out_too_often_is_caught() {
        handed_out(3, |count| count).breaks(Q4);
    }

    /// A claim that no consumer receives ends, and then the item is handed out as the `count`th time.
    fn after_nobodys(count: u32, end: impl Fn(&mut HistoryBuilder, &Stored)) -> HistoryBuilder {
        let mut history = HistoryBuilder::new();
        let item = history.at(3_000).put(0, 7);
        let take = history.take(1, true);
        history.at(3_100).claim(1, &item);
        history.at(3_101).end_take(1, take).at(3_200);
        end(&mut history, &item);
        history.at(4_000).give(2, &item, count);
        history.end(4_100)
    }

    #[test]
    fn a_claim_that_no_caller_received_is_withdrawn() {
        let take_back = |history: &mut HistoryBuilder, item: &Stored| {
            history.take_back(1, item);
        };
        after_nobodys(1, take_back).holds();
        after_nobodys(2, take_back).breaks(Q4);
        let leave = |history: &mut HistoryBuilder, item: &Stored| {
            history.end_claim(1, item);
        };
        after_nobodys(2, leave).breaks(Q4);
        after_nobodys(1, leave).holds();
    }

    #[test]
    fn a_claim_whose_client_died_may_count() {
        let die = |history: &mut HistoryBuilder, _: &Stored| {
            history.record(1, EventKind::Crashed).at(3_900).end_session(2, EndCause::Expired);
        };
        after_nobodys(2, die).holds();
        after_nobodys(1, die).holds();
        after_nobodys(3, die).breaks(Q4);
    }

    #[test]
    fn an_item_that_is_put_back_keeps_its_count() {
        let (mut history, given) = HistoryBuilder::of_delivery();
        history.at(300).settling(&given, Settlement::PutBack);
        let moved = history.move_item(&given, "");
        history.at(305).settled(&given, Some(true)).at(400);
        let again = |count| {
            let mut history = history.clone();
            history.give(2, &moved, count);
            history.end(1_000)
        };
        again(2).holds();
        again(1).breaks(Q4);
    }
}
