use crate::analysis::Analysis;
use crate::journal_replay::NodeLife;
use crate::queue_item::Item;
use crate::queues::Queues;
use crate::violation::{Found, Invariant, Violation};

/// **No claim without an item**: a claim is made of an item that is there, and goes in the step that deletes
/// the item, if it is not gone before. So is what counts its hand-outs, which is there for one step.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    let queues = Queues::of(analysis);
    for claim in &queues.strays {
        found.push(violation(claim, "was made of an item that is not there:"));
    }
    for item in queues.items.values() {
        let left = item.claims.iter().filter(|claim| outlives(claim, item));
        found.extend(left.map(|claim| violation(claim, "stays behind its item:")));
        let stays =
            |counter: &&&NodeLife| counter.gone.is_none_or(|gone| gone.when.zxid != counter.created.zxid);
        let counters = item.counters.iter().filter(stays);
        found.extend(counters.map(|counter| violation(counter, "is there for longer than a step:")));
    }
}

/// True when a claim was there after its item.
fn outlives(claim: &NodeLife, item: &Item<'_>) -> bool {
    let zxid = |gone: Option<crate::journal_replay::Gone>| gone.map_or(i64::MAX, |gone| gone.when.zxid);
    claim.created.zxid > zxid(item.node.gone) || zxid(claim.gone) > zxid(item.node.gone)
}

fn violation(node: &NodeLife, what: &str) -> Violation {
    Violation::new(Invariant::Q10, node.created.at, format!("a node {what}")).path(&node.path)
}

#[cfg(test)]
mod tests {
    use crate::history::{HistoryBuilder, QueueEvents};
    use crate::journal::EndCause;
    use crate::violation::Invariant::Q10;

    #[test]
    fn a_claim_goes_with_its_item_or_before_it() {
        let (mut history, given) = HistoryBuilder::of_delivery();
        history.at(300).acking(&given);
        history.clone().end_item(&given).at(302).settled(&given, Some(true)).end(1_000).holds();
        history.clone().delete_claim(&given).end(1_000).holds();
        history.delete_path(&given.item.node, 2).at(302).end_session(2, EndCause::Closed);
        history.end(1_000).breaks_also(Q10);
    }

    #[test]
    fn a_claim_of_an_item_that_is_not_there_is_caught() {
        let (mut history, given) = HistoryBuilder::of_delivery();
        history.at(300).acking(&given).end_item(&given).at(302).settled(&given, Some(true));
        let take = history.at(400).take(2, true);
        let claim = history.claim_uncounted(2, &given.item);
        history.at(402).delete_path(&claim, 3).over(2, take).end(1_000).breaks(Q10);
    }

    #[test]
    fn what_counts_a_hand_out_is_there_for_one_step() {
        let (mut history, given) = HistoryBuilder::of_delivery();
        let counter = format!("{}/count", given.item.node);
        history.at(300).make(&counter, 2, 0).at(301).delete_path(&counter, 2);
        history.end(1_000).breaks(Q10);
    }
}
