use crate::analysis::Analysis;
use crate::event::ClientId;
use crate::journal_replay::NodeLife;
use crate::queues::{Queues, Take};
use crate::run::Decodable;
use crate::spans::{Span, Spans};
use crate::violation::{Found, Invariant, Violation};
use std::collections::BTreeMap;
use std::time::Duration;

/// **Free items are noticed**: while an item has no claim and a consumer waits, some item is claimed soon.
/// Soon means the time for a notification, a few round trips, and the time for which a listing is used. This
/// includes items whose claim ended with a session, and items whose time has come. If only clients of the
/// newer version can decode the item, a waiting client of that version claims it or another item, whichever
/// clients are ahead in the line.
///
/// - Nothing is checked while a fault affects the waiting consumer, or did a moment before, nor while its
///   session may be too short for a lease.
/// - The first two in the line watch. While a fault affects another consumer in the line, one more second is
///   permitted. While faults affect two, the time is permitted after which those behind them list on their
///   own.
/// - Each client of the older version in the line is permitted the time to make way.
/// - Items that no consumer can decode, and queues in ordered mode, are not checked.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    let queues = Queues::of(analysis);
    for (path, stock) in stocks(analysis, &queues) {
        for take in queues.takes.iter().filter(|take| take.waits && take.path == path) {
            let shelf = if take.newer { &stock.newer } else { &stock.all };
            if let Some(Span { from, until }) = overlooked(analysis, &queues, shelf, take) {
                let what =
                    format!("a consumer waits, but no free item has been claimed for {:?}:", until - from);
                found.push(Violation::new(Invariant::Q8, until, what).client(take.client).path(path));
            }
        }
    }
}

/// A queue as clients of each version see it.
#[derive(Default)]
struct Stock {
    all: Shelf,
    newer: Shelf,
}

/// Times at which items were free that a client can decode, and at which some item was claimed by a client
/// that may keep it.
#[derive(Default)]
struct Shelf {
    free: Vec<Span>,
    claimed: Vec<Duration>,
}

fn stocks<'s>(analysis: &Analysis<'_>, queues: &Queues<'s>) -> BTreeMap<&'s str, Stock> {
    let mut stocks: BTreeMap<&str, Stock> = BTreeMap::new();
    for item in queues.items.values().filter(|item| !item.ordered) {
        let Stock { all, newer } = stocks.entry(item.queued.queue.as_str()).or_default();
        let free = || item.free().map(|(from, until)| Span { from, until });
        if item.decodable == Decodable::All {
            all.free.extend(free());
        }
        if item.decodable != Decodable::NoClient {
            newer.free.extend(free());
        }
        let may_keep = |claim: &&&NodeLife| {
            item.decodable == Decodable::All
                || analysis.client_of(claim.owner).is_some_and(|client| queues.newer.contains(&client))
        };
        all.claimed.extend(item.claims.iter().map(|claim| claim.created.at));
        newer.claimed.extend(item.claims.iter().filter(may_keep).map(|claim| claim.created.at));
    }
    for shelf in stocks.values_mut().flat_map(|stock| [&mut stock.all, &mut stock.newer]) {
        shelf.claimed.sort_unstable();
        let spans = Spans::new(std::mem::take(&mut shelf.free));
        shelf.free = spans.between(Duration::ZERO, Duration::MAX).collect();
    }
    stocks
}

/// Longest time that an item may be free while a consumer waits.
fn patience(analysis: &Analysis<'_>) -> Duration {
    /// How long a listing is used, plus the pause between two listings of claims.
    const LISTED: Duration = Duration::from_millis(600);
    let tolerances = analysis.tolerances();
    tolerances.notification
        + tolerances.lag * 2
        + tolerances.round_trip * 20
        + tolerances.scheduling * 2
        + LISTED
}

fn overlooked(analysis: &Analysis<'_>, queues: &Queues<'_>, stock: &Shelf, take: &Take<'_>) -> Option<Span> {
    let end = [take.ended, analysis.leaving(take.client), Some(analysis.facts().end.at)]
        .into_iter()
        .flatten()
        .min()?;
    let patience = patience(analysis);
    let first = stock.free.partition_point(|span| span.until <= take.began);
    for span in stock.free[first..].iter().take_while(|span| span.from < end) {
        let (mut from, until) = (span.from.max(take.began), span.until.min(end));
        let next = stock.claimed.partition_point(|claimed| *claimed < from);
        let claimed = stock.claimed[next..].iter().copied().take_while(|claimed| *claimed < until);
        for claimed in claimed.chain([until]) {
            // The time starts again at the end of faults that happened meanwhile.
            while from.saturating_add(patience) < claimed {
                let due = from + patience;
                let due = due.saturating_add(allowed(analysis, queues, take, from, due));
                if due >= claimed {
                    break;
                }
                let Some(healthy_since) = wrong_until(analysis, take, from, due) else {
                    return Some(Span { from, until: claimed });
                };
                from = healthy_since;
            }
            from = claimed;
        }
    }
    None
}

/// Time until which a fault affected the waiting consumer, between two times; `None` if there was none.
fn wrong_until(
    analysis: &Analysis<'_>,
    take: &Take<'_>,
    from: Duration,
    until: Duration,
) -> Option<Duration> {
    let wrong = last_wrong(analysis, take.client, from, until)?;
    // Ensures progress.
    Some(wrong.max(from.saturating_add(Duration::from_nanos(1))))
}

/// Time until which a fault affected a client between two times, or a moment before.
fn last_wrong(
    analysis: &Analysis<'_>,
    client: ClientId,
    from: Duration,
    until: Duration,
) -> Option<Duration> {
    let reconnect = analysis.tolerances().reconnect;
    let life = analysis.life(client)?;
    let last = |spans: &Spans| spans.between(from.saturating_sub(reconnect), until).last();
    let last = [&life.apart, &life.short].into_iter().filter_map(last).map(|span| span.until).max()?;
    Some(last.saturating_add(reconnect))
}

/// Additional time that is permitted while other consumers in the line may not watch, or make way.
fn allowed(
    analysis: &Analysis<'_>,
    queues: &Queues<'_>,
    take: &Take<'_>,
    from: Duration,
    until: Duration,
) -> Duration {
    /// Time that the second consumer leaves to the first, plus a listing.
    const STEP_IN: Duration = Duration::from_secs(1);
    let places = queues.idle.iter().filter(|(queue, node)| {
        *queue == take.path
            && node.created.at <= until
            && node.deleted.is_none_or(|deleted| deleted.when.at >= from)
    });
    let (mut count, mut deaf, mut older) = (0, 0, 0);
    for (_, node) in places {
        let client = analysis.client_of(node.owner);
        count += 1;
        deaf += usize::from(client.is_none_or(|client| may_be_deaf(analysis, client, from, until)));
        older += u32::from(client.is_none_or(|client| !queues.newer.contains(&client)));
    }
    let making_way = if take.newer { make_way(analysis) * older } else { Duration::ZERO };
    making_way
        + match deaf {
            0 => Duration::ZERO,
            1 => STEP_IN,
            _ => STEP_IN + listing_interval(analysis, count),
        }
}

fn may_be_deaf(analysis: &Analysis<'_>, client: ClientId, from: Duration, until: Duration) -> bool {
    analysis.leaving(client).is_some_and(|leaving| leaving <= until)
        || last_wrong(analysis, client, from, until).is_some()
}

/// Longest time until one of the consumers that do not watch lists the items, in a line with this number of
/// places.
fn listing_interval(analysis: &Analysis<'_>, places: usize) -> Duration {
    /// Number of places that list in the same period.
    const GROUP: usize = 8;
    let timeout = analysis.facts().timeout;
    let groups = u32::try_from(1 + places / GROUP).unwrap_or(u32::MAX);
    (timeout / 6).saturating_mul(groups).min(timeout)
}

/// Longest time that a client at the head of the line needs to make way for those behind it.
fn make_way(analysis: &Analysis<'_>) -> Duration {
    /// Pause between two listings of the claims, plus the time that the second consumer leaves to the first.
    const PAUSES: Duration = Duration::from_millis(350);
    let tolerances = analysis.tolerances();
    tolerances.round_trip * 10 + tolerances.lag * 2 + PAUSES
}

#[cfg(test)]
mod tests {
    use crate::event::{EventKind, FaultKind, LinkState};
    use crate::history::{HistoryBuilder, QueueEvents};
    use crate::journal::EndCause;
    use crate::violation::Invariant::Q8;

    #[test]
    fn an_item_is_claimed_soon_after_it_was_put() {
        let mut history = HistoryBuilder::new();
        let take = history.at(3_000).take(1, true);
        let item = history.at(5_000).put(0, 7);
        history.clone().end(6_000).holds();
        history.clone().end(20_000).breaks(Q8);
        let given = history.at(5_010).give(1, &item, 1);
        history.end_take(1, take).at(15_000).given_back(&given).delete_claim(&given).end(20_000).holds();
    }

    #[test]
    fn a_take_that_does_not_wait_need_not_notice_an_item() {
        let mut history = HistoryBuilder::new();
        history.at(3_000).take(1, false);
        history.at(5_000).put(0, 7);
        history.end(20_000).holds();
    }

    #[test]
    fn an_item_whose_claim_is_deleted_with_its_session_is_noticed() {
        let mut history = HistoryBuilder::new();
        let item = history.at(3_000).put(0, 7);
        let given = history.at(3_100).give(1, &item, 1);
        let take = history.at(3_200).take(2, true);
        history.at(9_000).end_session(2, EndCause::Forced).held(&given, false).given_back(&given);
        history.link(1, LinkState::Lost);
        history.clone().end(30_000).breaks(Q8);
        history.at(9_100).give(2, &item, 2);
        history.end_take(2, take).end(30_000).holds();
    }

    #[test]
    fn a_consumer_that_is_cut_off_need_not_notice_an_item() {
        let mut history = HistoryBuilder::new();
        history.at(3_000).take(1, true);
        history.at(4_000).fault(1, FaultKind::Cut).link(1, LinkState::Suspended);
        history.at(5_000).put(0, 7);
        history.end(20_000).holds();
        history.at(21_000).heal(1, FaultKind::Cut).link(1, LinkState::Connected);
        history.clone().end(24_000).holds();
        history.end(40_000).breaks(Q8);
    }

    #[test]
    fn a_consumer_that_may_have_no_lease_need_not_notice_an_item_until_it_reconnects() {
        let mut history = HistoryBuilder::new();
        history.at(3_000).take(1, true);
        history.at(4_000).world(EventKind::Fault(FaultKind::ShortTimeouts));
        history.at(4_100).link(1, LinkState::Suspended).at(4_200).link(1, LinkState::Connected);
        history.at(4_500).world(EventKind::Healed(FaultKind::ShortTimeouts));
        history.at(5_000).put(0, 7);
        history.clone().end(20_000).holds();
        history.at(21_000).link(1, LinkState::Suspended).at(21_100).link(1, LinkState::Connected);
        history.clone().end(24_000).holds();
        history.end(40_000).breaks(Q8);
    }

    #[test]
    fn if_the_first_in_the_line_is_cut_off_the_second_claims_the_item() {
        let claimed_at = |at| {
            let mut history = HistoryBuilder::new();
            history.at(3_000).take(1, true);
            history.take(2, true);
            history.idle(2);
            history.idle(1);
            history.at(4_000).fault(2, FaultKind::Cut).link(2, LinkState::Suspended);
            let item = history.at(5_000).put(0, 7);
            history.at(at).give(1, &item, 1);
            history.end(at + 1_000)
        };
        // Without faults it takes less than 1.5 s.
        claimed_at(7_000).holds();
        claimed_at(9_000).breaks(Q8);
    }

    #[test]
    fn a_delayed_item_is_noticed_when_it_is_due() {
        let claimed_at = |at| {
            let mut history = HistoryBuilder::new();
            history.at(3_000).take(1, true);
            // 32,768 ms.
            let item = history.put_at(0, 7, "t0000000000008000-");
            history.at(at).give(1, &item, 1);
            history.end(at + 1_000)
        };
        claimed_at(33_000).holds();
        claimed_at(50_000).breaks(Q8);
    }

    #[test]
    fn if_several_at_the_head_of_the_line_are_cut_off_the_next_one_claims_the_item() {
        let claimed_at = |at| {
            let mut history = HistoryBuilder::new();
            history.at(3_000).take(1, true);
            for cut_off in [2, 3] {
                history.take(cut_off, true);
                history.idle(cut_off);
            }
            history.idle(1);
            for cut_off in [2, 3] {
                history.at(4_000).fault(cut_off, FaultKind::Cut).link(cut_off, LinkState::Suspended);
            }
            let item = history.at(5_000).put(0, 7);
            history.at(at).give(1, &item, 1);
            history.end(at + 1_000)
        };
        // A sixth of the timeout is one second.
        claimed_at(8_000).holds();
        claimed_at(10_000).breaks(Q8);
    }

    #[test]
    fn an_item_is_noticed_by_a_consumer_that_decodes_it_behind_one_that_cannot() {
        let claimed_at = |at| {
            let mut history = HistoryBuilder::new();
            history.at(3_000).take(2, true);
            history.idle(2);
            history.take_newer(1, true);
            history.idle(1);
            let item = history.at(5_000).put(0, 7);
            history.of_newer_kind(&item).at(5_010).claim(2, &item);
            history.take_back(2, &item).at(at).give(1, &item, 1);
            history.end(at + 1_000)
        };
        claimed_at(6_500).holds();
        claimed_at(9_000).breaks(Q8);
    }

    #[test]
    fn an_undecodable_item_need_not_be_noticed() {
        let mut history = HistoryBuilder::new();
        history.at(3_000).take(1, true);
        let item = history.put(0, 7);
        history.undecodable(&item).end(40_000).holds();
    }
}
