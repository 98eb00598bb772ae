use crate::analysis::Analysis;
use crate::queue_item::Item;
use crate::queues::{Put, Queues};
use crate::violation::{Found, Invariant, Violation};
use std::collections::BTreeMap;
use std::time::Duration;

/// **Puts**: an item that was put successfully is in the queue once, from a moment between call and return;
/// one that was surely not put, such as beyond the capacity, is never there; any other is there once at most.
/// Items that are put together come in one step, in their order, all or none. An item that is moved to
/// another place, in one step, is the same.
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
        let what = format!("item {item} is in the queue, and nobody put it:");
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
    let there: Vec<&Item<'_>> = items.iter().flatten().flatten().copied().collect();
    let outcome = put.ended.and_then(|(at, put)| Some((at, put?)));
    match (outcome, there.first()) {
        (Some((at, true)), _) if there.len() < put.items.len() => {
            return Some((at, format!("{:?} were put, and {} of them are there:", put.items, there.len())));
        }
        (Some((_, false)), Some(first)) => {
            return Some((first.node.created.at, format!("{:?} were not put, and are there:", put.items)));
        }
        (Some((at, true)), Some(first)) if first.node.created.at > at + grain => {
            return Some((at, format!("{:?} come after their put had returned:", put.items)));
        }
        (_, Some(first)) if first.node.created.at + grain < put.began => {
            return Some((put.began, format!("{:?} come before they were put:", put.items)));
        }
        _ => {}
    }
    let first = there.first()?;
    let torn = there.len() < put.items.len()
        || there.iter().any(|item| item.node.created.zxid != first.node.created.zxid);
    if torn {
        return Some((first.node.created.at, format!("of {:?} some came alone:", put.items)));
    }
    let sorted = there.is_sorted_by_key(|item| item.node.path.as_str());
    (!sorted).then(|| (first.node.created.at, format!("{:?} are not in their order:", put.items)))
}

#[cfg(test)]
mod tests {
    use crate::event::Settlement;
    use crate::history::{HistoryBuilder, QueueEvents};
    use crate::violation::Invariant::Q2;

    #[test]
    fn what_is_put_is_there_once() {
        let mut history = HistoryBuilder::new();
        let put = history.at(100).putting(0, &[7]);
        history.clone().at(105).stored(0, &[7]).at(110).put_ended(0, put, Some(true)).end(1_000).holds();
        history.clone().at(110).put_ended(0, put, Some(true)).end(1_000).breaks(Q2);
        history.clone().at(110).put_ended(0, put, Some(true)).at(200).stored(0, &[7]).end(1_000).breaks(Q2);
        history.stored(0, &[7]).at(103).stored(0, &[7]).at(110).put_ended(0, put, Some(true));
        history.end(1_000).breaks(Q2);
    }

    #[test]
    fn what_may_have_been_put_is_there_once_at_most() {
        let mut history = HistoryBuilder::new();
        let put = history.at(100).putting(0, &[7]);
        history.at(110).put_ended(0, put, None);
        history.clone().end(1_000).holds();
        history.clone().at(300).stored(0, &[7]).end(1_000).holds();
        history.at(300).stored(0, &[7]).at(310).stored(0, &[7]).end(1_000).breaks(Q2);
    }

    #[test]
    fn what_was_refused_is_not_there() {
        let mut history = HistoryBuilder::new();
        let put = history.at(100).putting(0, &[7]);
        history.clone().at(110).put_ended(0, put, Some(false)).end(1_000).holds();
        history.at(110).put_ended(0, put, Some(false)).at(200).stored(0, &[7]).end(1_000).breaks(Q2);
    }

    #[test]
    fn what_goes_together_comes_in_one_step_and_in_order() {
        let mut history = HistoryBuilder::new();
        let put = history.at(100).putting(0, &[7, 8]);
        let ended = |history: &mut HistoryBuilder| history.at(110).put_ended(0, put, Some(true)).end(1_000);
        ended(history.clone().stored(0, &[7, 8])).holds();
        ended(history.clone().stored(0, &[8, 7])).breaks(Q2);
        ended(history.clone().stored(0, &[7]).stored(0, &[8])).breaks(Q2);
        history.stored(0, &[7]).at(110).put_ended(0, put, None).end(1_000).breaks(Q2);
    }

    #[test]
    fn what_nobody_put_is_caught() {
        HistoryBuilder::new().at(100).stored(0, &[7]).end(1_000).breaks(Q2);
    }

    #[test]
    fn what_is_moved_is_there_once() {
        let (mut history, given) = HistoryBuilder::of_delivery();
        history.at(300).settling(&given, Settlement::PutBack);
        history.clone().stored(1, &[7]).end(1_000).breaks(Q2);
        history.move_item(&given, "t0000000000000200-");
        history.end(1_000).holds();
    }
}
