use crate::analysis::Analysis;
use crate::event::ClientId;
use crate::journal_replay::Moment;
use crate::queue_item::Item;
use crate::queues::Queues;
use crate::run::Decodable;
use crate::violation::{Found, Invariant, Violation};
use std::collections::BTreeMap;
use std::time::Duration;

/// **Turns**: an item is not claimed before its time, nor while a preceding item has been free for longer
/// than a listing is used, which is half a second.
///
/// Lower priorities precede higher ones. Within a priority, items precede those that were put later; items
/// with a time precede those with a later time.
///
/// Clients that a fault affected meanwhile are not checked. A client leaves items that it cannot decode to
/// others. The clocks of processes agree with the journal's.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    let queues = Queues::of(analysis);
    let mut stocks: BTreeMap<&str, Vec<&Item<'_>>> = BTreeMap::new();
    // `in_order` checks queues in ordered mode.
    for item in queues.items.values().filter(|item| !item.ordered) {
        stocks.entry(item.queued.queue.as_str()).or_default().push(item);
        found.extend(too_early(analysis, item));
    }
    for stock in stocks.values() {
        let mut claims: Vec<Claim<'_>> = stock.iter().flat_map(|item| claims(analysis, item)).collect();
        claims.sort_unstable_by_key(|claim| claim.created);
        for item in stock {
            found.extend(overtaken(analysis, &queues, item, &claims));
        }
    }
}

/// A claim of an item.
struct Claim<'s> {
    created: Moment,
    client: Option<ClientId>,
    item: &'s Item<'s>,
}

fn claims<'s>(analysis: &Analysis<'_>, item: &'s Item<'s>) -> impl Iterator<Item = Claim<'s>> {
    item.claims.iter().map(|claim| Claim {
        created: claim.created,
        client: analysis.client_of(claim.owner),
        item,
    })
}

fn too_early(analysis: &Analysis<'_>, item: &Item<'_>) -> Option<Violation> {
    let due = item.place.due?;
    let claim = item.claims.first()?;
    if claim.created.at + analysis.tolerances().grain >= due {
        return None;
    }
    let what = format!("item {} was claimed {:?} before its time:", item.queued.item, due - claim.created.at);
    let violation = Violation::new(Invariant::Q3, claim.created.at, what).path(&item.node.path);
    Some(analysis.client_of(claim.owner).into_iter().fold(violation, Violation::client))
}

/// Longest time until a client learns that an item is free.
fn patience(analysis: &Analysis<'_>) -> Duration {
    /// How long a listing is used.
    const FRESH: Duration = Duration::from_millis(500);
    let tolerances = analysis.tolerances();
    tolerances.notification + tolerances.lag * 2 + tolerances.round_trip * 20 + tolerances.scheduling + FRESH
}

/// Finds an item that had been free for long when an item behind it was claimed.
fn overtaken(
    analysis: &Analysis<'_>,
    queues: &Queues<'_>,
    item: &Item<'_>,
    claims: &[Claim<'_>],
) -> Option<Violation> {
    let can_decode = |claim: &&Claim<'_>| match item.decodable {
        Decodable::All => true,
        Decodable::Newer => claim.client.is_some_and(|client| queues.newer.contains(&client)),
        Decodable::NoClient => false,
    };
    let patience = patience(analysis);
    item.free().find_map(|(from, until)| {
        let known_at = from.saturating_add(patience);
        let first = claims.partition_point(|claim| claim.created.at <= known_at);
        let meanwhile = claims[first..].iter().take_while(|claim| claim.created.at < until);
        let meanwhile = meanwhile.filter(can_decode);
        let mut wrong = meanwhile.filter(|claim| item.place.goes_before(&claim.item.place));
        let claim = wrong.find(|claim| is_well(analysis, claim, patience))?;
        let what = format!(
            "item {} was claimed while {}, which precedes it, was free for {:?}:",
            claim.item.queued.item,
            item.queued.item,
            claim.created.at - from
        );
        let violation = Violation::new(Invariant::Q3, claim.created.at, what);
        let violation = violation.path(&item.node.path).path(&claim.item.node.path);
        Some(claim.client.into_iter().fold(violation, Violation::client))
    })
}

/// Returns true if no fault affected the client of a claim for long enough before the claim.
fn is_well(analysis: &Analysis<'_>, claim: &Claim<'_>, patience: Duration) -> bool {
    let Some(life) = claim.client.and_then(|client| analysis.life(client)) else { return false };
    let before = patience + analysis.tolerances().reconnect;
    life.apart.spare(claim.created.at.saturating_sub(before), claim.created.at)
}

#[cfg(test)]
mod tests {
    use crate::event::FaultKind;
    use crate::history::{HistoryBuilder, QueueEvents};
    use crate::violation::Invariant::Q3;

    #[test]
    fn an_item_is_not_claimed_before_its_time() {
        let claimed_at = |at| {
            let mut history = HistoryBuilder::new();
            // 4,096 ms.
            let item = history.at(3_000).put_at(0, 7, "t0000000000001000-");
            history.at(at).give(1, &item, 1);
            history.end(9_000)
        };
        claimed_at(4_096).holds();
        claimed_at(4_080).breaks(Q3);
    }

    /// An item at the `first` place is free from 10 s on. An item at the `second` place is claimed later.
    fn second_claimed_at(at: u64, [first, second]: [&str; 2], cut: bool) -> HistoryBuilder {
        let mut history = HistoryBuilder::new();
        let before = history.at(10_000).put_at(0, 7, first);
        let behind = history.put_at(0, 8, second);
        // Claimed once in its turn, because `item_order` checks first claims.
        let given = history.give(2, &before, 1);
        history.given_back(&given).delete_claim(&given);
        if cut {
            history.at(10_100).fault(1, FaultKind::Cut).at(at - 100).heal(1, FaultKind::Cut);
        }
        history.at(at).give(1, &behind, 1);
        history.end(at + 100)
    }

    #[test]
    fn an_item_that_is_ahead_is_noticed_after_a_while() {
        let places = [
            ["", ""],
            ["p7fffffff-", ""],
            ["", "p80000001-"],
            ["t0000000000000001-", "t0000000000000001-"],
            ["t0000000000000001-", "t0000000000000002-"],
        ];
        for places in places {
            second_claimed_at(10_400, places, false).holds();
            second_claimed_at(30_000, places, false).breaks(Q3);
            second_claimed_at(30_000, places, true).holds();
        }
        for places in [["", "p7fffffff-"], ["t0000000000000001-", ""], ["", "t0000000000000001-"]] {
            second_claimed_at(30_000, places, false).holds();
        }
    }

    #[test]
    fn an_undecodable_item_is_left_to_other_consumers() {
        let mut history = HistoryBuilder::new();
        let before = history.at(10_000).put(0, 7);
        let behind = history.put(0, 8);
        history.undecodable(&before).claim(2, &before);
        history.take_back(2, &before).at(30_000).give(1, &behind, 1);
        history.end(30_100).holds();
    }
}
