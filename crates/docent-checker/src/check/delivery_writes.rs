use crate::analysis::Analysis;
use crate::journal::ChangeKind;
use crate::queues::{Delivered, Queues};
use crate::violation::{Found, Invariant, Violation};
use std::collections::HashMap;
use std::time::Duration;

/// **Writes under a delivery**: a transaction of a delivery is applied only while no later delivery of the
/// same item was handed out, whatever the delivery's process knows of that; and what it says of the outcome
/// is true.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    let queues = Queues::of(analysis);
    let mut created: HashMap<&str, Duration> = HashMap::new();
    for change in analysis.run.journal.iter().filter(|change| change.kind == ChangeKind::Created) {
        created.entry(&change.path).or_insert(change.at);
    }
    for delivered in &queues.deliveries {
        for (node, applied) in &delivered.writes {
            let at = created.get(node).copied();
            if let Some((at, what)) = wrong(analysis, &queues, delivered, at, *applied) {
                let violation = Violation::new(Invariant::Q11, at, what);
                found.push(violation.client(delivered.client).path(*node).path(delivered.node));
            }
        }
    }
}

fn wrong(
    analysis: &Analysis<'_>,
    queues: &Queues<'_>,
    delivered: &Delivered<'_>,
    written: Option<Duration>,
    applied: Option<bool>,
) -> Option<(Duration, String)> {
    let item = delivered.item;
    match (written, applied) {
        (None, Some(true)) => {
            return Some((
                delivered.at,
                format!("a write under item {item} is said to be applied, and is not:"),
            ));
        }
        (Some(at), Some(false)) => {
            return Some((at, format!("a write under item {item} was applied, and is said not to be:")));
        }
        _ => {}
    }
    let at = written?;
    let grain = analysis.tolerances().grain;
    let mut later = queues.deliveries_of_item(item).filter(|other| other.fence > delivered.fence);
    let next = later.find(|other| other.at + grain < at)?;
    let late = at - next.at;
    Some((at, format!("a write under item {item} was applied {late:?} after the item was handed out anew:")))
}

#[cfg(test)]
mod tests {
    use crate::event::Delivering;
    use crate::history::{Given, HistoryBuilder, QueueEvents};
    use crate::violation::Invariant::Q11;

    const NODE: &str = "/written/1";

    fn wrote(history: &mut HistoryBuilder, given: &Given, applied: Option<bool>) {
        history.of_given(given, Delivering::Wrote { node: NODE.to_owned(), applied });
    }

    #[test]
    fn a_write_is_applied_while_the_item_is_nobody_elses() {
        let (mut history, given) = HistoryBuilder::of_delivery();
        history.at(300).make(NODE, 2, 0);
        wrote(&mut history, &given, Some(true));
        history.end(1_000).holds();
    }

    #[test]
    fn a_write_that_is_applied_after_the_next_delivery_is_caught() {
        let (mut history, first) = HistoryBuilder::of_delivery();
        history.at(300).delete_path(&first.claim(), 1);
        history.at(400).evict(&first);
        history.at(410).give(2, &first.item, 2);
        let mut refused = history.clone();
        wrote(refused.at(500), &first, Some(false));
        refused.end(1_000).holds();
        history.at(500).make(NODE, 2, 0);
        wrote(&mut history, &first, Some(true));
        history.end(1_000).breaks(Q11);
    }

    #[test]
    fn an_outcome_that_is_not_true_is_caught() {
        for (is_there, applied) in [(true, false), (false, true)] {
            let (mut history, given) = HistoryBuilder::of_delivery();
            history.at(300);
            if is_there {
                history.make(NODE, 2, 0);
            }
            wrote(&mut history, &given, Some(applied));
            history.end(1_000).breaks(Q11);
        }
    }
}
