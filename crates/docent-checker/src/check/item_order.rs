use crate::analysis::Analysis;
use crate::queue_item::Item;
use crate::queues::Queues;
use crate::violation::{Found, Invariant, Violation};
use std::collections::BTreeMap;

/// **Order**: items of one priority without a time are claimed for the first time in the order in which they
/// were put.
///
/// A claim that was given back immediately counts. An item that was given back may be overtaken by later
/// ones. `item_turns` checks for how long, and the order of several priorities.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    let queues = Queues::of(analysis);
    let mut lines: BTreeMap<(&str, i32), Vec<&Item<'_>>> = BTreeMap::new();
    // `in_order` checks queues in ordered mode.
    for item in queues.items.values().filter(|item| item.place.due.is_none() && !item.ordered) {
        lines.entry((item.queued.queue.as_str(), item.place.priority)).or_default().push(item);
    }
    for ((queue, _), mut line) in lines {
        line.sort_unstable_by_key(|item| item.place.number);
        check_line(queue, &line, found);
    }
}

fn check_line(queue: &str, line: &[&Item<'_>], found: &mut Found) {
    // The earliest first claim among the later items.
    let mut earliest: Option<(i64, &Item<'_>)> = None;
    for item in line.iter().rev() {
        let first = item.claims.first().map(|claim| claim.created);
        if let Some((_, other)) = earliest.filter(|(zxid, _)| first.is_none_or(|first| *zxid < first.zxid)) {
            let what = format!(
                "item {} was claimed before {}, which was put earlier:",
                other.queued.item, item.queued.item
            );
            let at = other.claims[0].created.at;
            let violation = Violation::new(Invariant::Q3, at, what);
            found.push(violation.path(queue).path(&item.node.path).path(&other.node.path));
        }
        if let Some(first) = first
            && earliest.is_none_or(|(zxid, _)| first.zxid < zxid)
        {
            earliest = Some((first.zxid, item));
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
    fn an_item_that_is_claimed_before_an_earlier_one_is_caught() {
        let mut history = HistoryBuilder::new();
        let (first, second) = (history.at(100).put(0, 7), history.put(0, 8));
        history.at(200).give(2, &second, 1);
        history.clone().end(1_000).breaks(Q3);
        history.give(1, &first, 1);
        history.end(1_000).breaks(Q3);
    }

    #[test]
    fn an_item_that_is_given_back_may_be_overtaken() {
        let mut history = HistoryBuilder::new();
        let (first, second) = (history.at(100).put(0, 7), history.put(0, 8));
        let given = history.at(200).give(1, &first, 1);
        history.given_back(&given).delete_claim(&given).give(2, &second, 1);
        history.at(300).give(1, &first, 2);
        history.end(1_000).holds();
    }

    #[test]
    fn items_of_each_priority_are_in_their_order() {
        let mut history = HistoryBuilder::new();
        let places = ["", "p80000001-", "", "p80000001-"];
        let put = |(item, place): (u64, &str)| history.put_at(0, item, place);
        let items: Vec<_> = (7..).zip(places).map(put).collect();
        let order = |order: [usize; 4]| {
            let mut history = history.clone();
            for index in order {
                history.at(200).give(1, &items[index], 1);
            }
            history.end(1_000)
        };
        order([1, 0, 3, 2]).holds();
        order([1, 2, 0, 3]).breaks(Q3);
        order([3, 0, 1, 2]).breaks(Q3);
    }
}
