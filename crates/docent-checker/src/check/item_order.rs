use crate::analysis::Analysis;
use crate::queues::{Item, Queues};
use crate::violation::{Found, Invariant, Violation};
use std::collections::BTreeMap;

/// **Order**: items are claimed for the first time in the order in which they were put.
///
/// A claim that was given back at once counts. One that comes back may be overtaken by later ones.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    let queues = Queues::of(analysis);
    // Of each queue, of the items behind, the one that was claimed first.
    let mut earliest: BTreeMap<&str, (i64, &Item<'_>)> = BTreeMap::new();
    for item in queues.items.values().rev() {
        let first = item.claims.first().map(|claim| claim.created);
        let queue = item.queued.queue.as_str();
        let behind = earliest.get(queue).copied();
        if let Some((_, other)) = behind.filter(|(zxid, _)| first.is_none_or(|first| *zxid < first.zxid)) {
            let what = format!(
                "item {} was claimed before {}, which was put earlier:",
                other.queued.item, item.queued.item
            );
            let at = other.claims[0].created.at;
            let violation = Violation::new(Invariant::Q3, at, what);
            found.push(violation.path(queue).path(&item.node.path).path(&other.node.path));
        }
        if let Some(first) = first
            && behind.is_none_or(|(zxid, _)| first.zxid < zxid)
        {
            earliest.insert(queue, (first.zxid, item));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::history::{HistoryBuilder, QueueEvents};
    use crate::violation::Invariant::Q3;

    #[test]
    fn items_are_claimed_in_their_order() {
        let mut history = HistoryBuilder::new();
        let (first, second) = (history.at(100).put(0, 7), history.put(0, 8));
        history.at(200).give(1, &first, 1);
        history.give(2, &second, 1);
        history.end(1_000).holds();
    }

    #[test]
    fn one_that_is_claimed_before_an_earlier_one_is_caught() {
        let mut history = HistoryBuilder::new();
        let (first, second) = (history.at(100).put(0, 7), history.put(0, 8));
        history.at(200).give(2, &second, 1);
        history.clone().end(1_000).breaks(Q3);
        history.give(1, &first, 1);
        history.end(1_000).breaks(Q3);
    }

    #[test]
    fn one_that_comes_back_may_be_overtaken() {
        let mut history = HistoryBuilder::new();
        let (first, second) = (history.at(100).put(0, 7), history.put(0, 8));
        let given = history.at(200).give(1, &first, 1);
        history.given_back(&given).delete_claim(&given).give(2, &second, 1);
        history.at(300).give(1, &first, 2);
        history.end(1_000).holds();
    }
}
