use crate::analysis::Analysis;
use crate::queues::Queues;
use crate::violation::{Found, Invariant, Violation};

/// **Counts**: a delivery says how many claims of its item there were, its own included, and no item is
/// handed out more often than the queue allows.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    let queues = Queues::of(analysis);
    for delivered in &queues.deliveries {
        // Without a claim there is nothing to count: see Q6.
        let Some((item, claim)) = queues.claim_of(delivered) else { continue };
        let count = item.claims_by(claim.created.zxid);
        let most = analysis.facts().queues.get(&item.queued.queue).copied().unwrap_or(u32::MAX);
        let said = delivered.count.map(|count| count as usize);
        let what = if said != Some(count) {
            format!("delivery {count} of item {} says it is {said:?}:", delivered.item)
        } else if count > most as usize {
            format!("item {} was handed out {count} times, and {most} are allowed:", delivered.item)
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
    use crate::history::{HistoryBuilder, QueueEvents};
    use crate::violation::Invariant::Q4;

    fn handed_out(times: u32, say: impl Fn(u32) -> u32) -> HistoryBuilder {
        let mut history = HistoryBuilder::new();
        let item = history.at(100).put(0, 7);
        for count in 1..=times {
            let given = history.at(u64::from(count) * 200).give(1, &item, say(count));
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
    fn one_that_is_handed_out_too_often_is_caught() {
        handed_out(3, |count| count).breaks(Q4);
    }
}
