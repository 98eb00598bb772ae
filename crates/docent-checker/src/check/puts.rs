use crate::analysis::Analysis;
use crate::queue_item::Item;
use crate::queues::{Put, Queues};
use crate::violation::{Found, Invariant, Violation};
use std::collections::BTreeMap;
use std::time::Duration;

/// **Puts**:
///
/// - An item that was put successfully is in the queue exactly once, since a moment between call and return.
/// - An item that was definitely not put, for example because the queue was full, is never in the queue.
/// - Any other item is in the queue at most once.
/// - The items of one put are created in one transaction, in order, all or none.
///
/// An item that one transaction moves to another place is the same item.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    let queues = Queues::of(analysis);
    let mut nodes: BTreeMap<(&str, u64), Vec<&Item<'_>>> = BTreeMap::new();
    for item in queues.items.values().filter(|item| !item.is_moved_here) {
        nodes.entry((&item.queued.queue, item.queued.item)).or_default().push(item);
    }
    for put in &queues.puts {
        let items: Vec<_> = put.items.iter().map(|item| nodes.remove(&(put.path, *item))).collect();
        if let Some((at, what)) = wrong(analysis, put, &items) {
            let violation = Violation::new(Invariant::Q2, at, what).client(put.client).path(put.path);
            found.push(
                items.iter().flatten().flatten().fold(violation, |so_far, item| so_far.path(&item.node.path)),
            );
        }
    }
    for ((path, item), nodes) in nodes {
        let what = format!("item {item} is in the queue, but was never put:");
        found.push(Violation::new(Invariant::Q2, nodes[0].node.created.at, what).path(path));
    }
}

fn wrong(
    analysis: &Analysis<'_>,
    put: &Put<'_>,
    items: &[Option<Vec<&Item<'_>>>],
) -> Option<(Duration, String)> {
    let grain = analysis.tolerances().grain;
    for (item, nodes) in put.items.iter().zip(items) {
        if let Some([_, second, ..]) = nodes.as_deref() {
            return Some((second.node.created.at, format!("item {item} is in the queue twice:")));
        }
    }
    let existing: Vec<&Item<'_>> = items.iter().flatten().flatten().copied().collect();
    let outcome = put.ended.and_then(|(at, put)| Some((at, put?)));
    match (outcome, existing.first()) {
        (Some((at, true)), _) if existing.len() < put.items.len() => {
            return Some((
                at,
                format!("{:?} were put, but only {} of them exist:", put.items, existing.len()),
            ));
        }
        (Some((_, false)), Some(first)) => {
            return Some((first.node.created.at, format!("{:?} were not put, but exist:", put.items)));
        }
        (Some((at, true)), Some(first)) if first.node.created.at > at + grain => {
            return Some((at, format!("{:?} were created after their put had returned:", put.items)));
        }
        (_, Some(first)) if first.node.created.at + grain < put.began => {
            return Some((put.began, format!("{:?} were created before they were put:", put.items)));
        }
        _ => {}
    }
    let first = existing.first()?;
    let torn = existing.len() < put.items.len()
        || existing.iter().any(|item| item.node.created.zxid != first.node.created.zxid);
    if torn {
        return Some((first.node.created.at, format!("of {:?} only some were created together:", put.items)));
    }
    let sorted = existing.is_sorted_by_key(|item| item.node.path.as_str());
    (!sorted).then(|| (first.node.created.at, format!("{:?} are not in order:", put.items)))
}

#[cfg(test)]
mod tests {
    use crate::event::Settlement;
    use crate::history::{HistoryBuilder, QueueEvents};
    use crate::violation::Invariant::Q2;

    #[test]
    fn an_item_that_was_put_exists_once() {
        let mut history = HistoryBuilder::new();
        let put = history.at(100).putting(0, &[7]);
        history.clone().at(105).stored(0, &[7]).at(110).put_ended(0, put, Some(true)).end(1_000).holds();
        history.clone().at(110).put_ended(0, put, Some(true)).end(1_000).breaks(Q2);
        history.clone().at(110).put_ended(0, put, Some(true)).at(200).stored(0, &[7]).end(1_000).breaks(Q2);
        history.stored(0, &[7]).at(103).stored(0, &[7]).at(110).put_ended(0, put, Some(true));
        history.end(1_000).breaks(Q2);
    }

    #[test]
    fn an_item_of_a_put_without_a_reply_exists_at_most_once() {
        let mut history = HistoryBuilder::new();
        let put = history.at(100).putting(0, &[7]);
        history.at(110).put_ended(0, put, None);
        history.clone().end(1_000).holds();
        history.clone().at(300).stored(0, &[7]).end(1_000).holds();
        history.at(300).stored(0, &[7]).at(310).stored(0, &[7]).end(1_000).breaks(Q2);
    }

    #[test]
    fn an_item_of_a_failed_put_does_not_exist() {
        let mut history = HistoryBuilder::new();
        let put = history.at(100).putting(0, &[7]);
        history.clone().at(110).put_ended(0, put, Some(false)).end(1_000).holds();
        history.at(110).put_ended(0, put, Some(false)).at(200).stored(0, &[7]).end(1_000).breaks(Q2);
    }

    #[test]
    fn items_of_a_batch_are_created_in_one_transaction_and_in_order() {
        let mut history = HistoryBuilder::new();
        let put = history.at(100).putting(0, &[7, 8]);
        let ended = |history: &mut HistoryBuilder| history.at(110).put_ended(0, put, Some(true)).end(1_000);
        ended(history.clone().stored(0, &[7, 8])).holds();
        ended(history.clone().stored(0, &[8, 7])).breaks(Q2);
        ended(history.clone().stored(0, &[7]).stored(0, &[8])).breaks(Q2);
        history.stored(0, &[7]).at(110).put_ended(0, put, None).end(1_000).breaks(Q2);
    }

    #[test]
    fn an_item_without_a_put_is_caught() {
        HistoryBuilder::new().at(100).stored(0, &[7]).end(1_000).breaks(Q2);
    }

    #[test]
    fn a_moved_item_exists_once() {
        let (mut history, given) = HistoryBuilder::of_delivery();
        history.at(300).settling(&given, Settlement::PutBack);
        history.clone().stored(1, &[7]).end(1_000).breaks(Q2);
        history.move_item(&given, "t0000000000000200-");
        history.end(1_000).holds();
    }
}
