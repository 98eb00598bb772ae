use crate::analysis::Analysis;
use crate::journal::ChangeKind;
use crate::queues::{Delivered, Queues};
use crate::violation::{Found, Invariant, Violation};
use std::collections::HashMap;
use std::time::Duration;

/// **Writes under a delivery**: a transaction of a delivery is applied only if no later delivery of the same
/// item was handed out before, whether or not the process knows of that. The reported outcome of the
/// transaction is true.
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
                format!("a write under item {item} was reported as applied, but was not:"),
            ));
        }
        (Some(at), Some(false)) => {
            return Some((at, format!("a write under item {item} was applied, but reported as failed:")));
        }
        _ => {}
    }
    let at = written?;
    let grain = analysis.tolerances().grain;
    let mut later = queues.deliveries_of_item(item).filter(|other| other.fence > delivered.fence);
    let next = later.find(|other| other.at + grain < at)?;
    let delay = at - next.at;
    Some((at, format!("a write under item {item} was applied {delay:?} after the next hand-out:")))
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
    fn a_write_is_applied_before_the_next_delivery() {
        let (mut history, given) = HistoryBuilder::of_delivery();
        history.at(300).create_node(NODE, 2, 0);
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
        history.at(500).create_node(NODE, 2, 0);
        wrote(&mut history, &first, Some(true));
        history.end(1_000).breaks(Q11);
    }

    #[test]
    fn a_wrong_outcome_is_caught() {
        for (exists, applied) in [(true, false), (false, true)] {
            let (mut history, given) = HistoryBuilder::of_delivery();
            history.at(300);
            if exists {
                history.create_node(NODE, 2, 0);
            }
            wrote(&mut history, &given, Some(applied));
            history.end(1_000).breaks(Q11);
        }
    }
}
