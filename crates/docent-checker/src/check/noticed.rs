use crate::analysis::Analysis;
use crate::event::ClientId;
use crate::journal_replay::NodeLife;
use crate::queues::{Queues, Take};
use crate::spans::{Span, Spans};
use crate::violation::{Found, Invariant, Violation};
use std::collections::BTreeMap;
use std::time::Duration;

/// **A free item is noticed**: while an item has no claim, and a consumer waits for one, there is a claim of
/// some item soon: within the time for news, a few round trips, and the time for which a listing is used. So
/// is an item whose claim went with a session, and one whose time has come.
///
/// Nothing is asked while anything is wrong with the consumer that waits there, or was a moment before. The
/// first two in the line watch: while anything is wrong with another one in it, one second more is allowed,
/// and nothing is asked while it is with two. Items that cannot be decoded are left to others.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    let queues = Queues::of(analysis);
    for (path, stock) in stocks(&queues) {
        for take in queues.takes.iter().filter(|take| take.waits && take.path == path) {
            if let Some(Span { from, until }) = overlooked(analysis, &queues, &stock, take) {
                let what =
                    format!("somebody waits, items are free, and none is claimed for {:?}:", until - from);
                found.push(Violation::new(Invariant::Q8, until, what).client(take.client).path(path));
            }
        }
    }
}

/// Times at which items of a queue were free, and at which some were claimed.
#[derive(Default)]
struct Stock {
    free: Vec<Span>,
    claimed: Vec<Duration>,
}

fn stocks<'s>(queues: &Queues<'s>) -> BTreeMap<&'s str, Stock> {
    let mut stocks: BTreeMap<&str, Stock> = BTreeMap::new();
    for item in queues.items.values() {
        let stock = stocks.entry(item.queued.queue.as_str()).or_default();
        stock.claimed.extend(item.claims.iter().map(|claim| claim.created.at));
        if item.decodable {
            stock.free.extend(item.free().map(|(from, until)| Span { from, until }));
        }
    }
    for stock in stocks.values_mut() {
        stock.claimed.sort_unstable();
        let spans = Spans::new(std::mem::take(&mut stock.free));
        stock.free = spans.between(Duration::ZERO, Duration::MAX).collect();
    }
    stocks
}

/// Longest time that an item may be free while a consumer waits.
fn patience(analysis: &Analysis<'_>) -> Duration {
    /// For how long a listing is used, and the pause between two of claims.
    const LISTED: Duration = Duration::from_millis(600);
    let tolerances = analysis.tolerances();
    tolerances.news + tolerances.lag * 2 + tolerances.round_trip * 20 + tolerances.scheduling * 2 + LISTED
}

fn overlooked(analysis: &Analysis<'_>, queues: &Queues<'_>, stock: &Stock, take: &Take<'_>) -> Option<Span> {
    let end = [take.over, analysis.leaving(take.client), Some(analysis.facts().end.at)]
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
            // The time counts from the end of faults in the meantime.
            while from.saturating_add(patience) < claimed {
                let due = from + patience;
                let due = due.saturating_add(allowed(analysis, queues, take, from, due));
                if due >= claimed {
                    break;
                }
                let Some(well) = wrong_until(analysis, take, from, due) else {
                    return Some(Span { from, until: claimed });
                };
                from = well;
            }
            from = claimed;
        }
    }
    None
}

/// Time until which something was wrong with the consumer that waits, between two times; `None` when nothing
/// was.
fn wrong_until(
    analysis: &Analysis<'_>,
    take: &Take<'_>,
    from: Duration,
    until: Duration,
) -> Option<Duration> {
    let wrong = last_wrong(analysis, take.client, from, until)?;
    // It goes on.
    Some(wrong.max(from.saturating_add(Duration::from_nanos(1))))
}

/// Time until which something was wrong with a client between two times, or a moment before.
fn last_wrong(
    analysis: &Analysis<'_>,
    client: ClientId,
    from: Duration,
    until: Duration,
) -> Option<Duration> {
    let reconnect = analysis.tolerances().reconnect;
    let apart = &analysis.life(client)?.apart;
    let last = apart.between(from.saturating_sub(reconnect), until).last()?;
    Some(last.until.saturating_add(reconnect))
}

/// Time that is allowed besides, while others in the line may not watch: one of them leaves the second a
/// moment, and two of them may be those who watch.
fn allowed(
    analysis: &Analysis<'_>,
    queues: &Queues<'_>,
    take: &Take<'_>,
    from: Duration,
    until: Duration,
) -> Duration {
    /// Time that the second leaves to the first, and a listing.
    const STEP_IN: Duration = Duration::from_secs(1);
    let may_be_deaf = |(queue, node): &&(&str, &NodeLife)| {
        *queue == take.path
            && node.created.at <= until
            && node.gone.is_none_or(|gone| gone.when.at >= from)
            && analysis.client_of(node.owner).is_none_or(|client| {
                analysis.leaving(client).is_some_and(|leaving| leaving <= until)
                    || last_wrong(analysis, client, from, until).is_some()
            })
    };
    match queues.idle.iter().filter(may_be_deaf).count() {
        0 => Duration::ZERO,
        1 => STEP_IN,
        _ => Duration::MAX,
    }
}

#[cfg(test)]
mod tests {
    use crate::event::{FaultKind, LinkState};
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
        history.over(1, take).at(15_000).given_back(&given).delete_claim(&given).end(20_000).holds();
    }

    #[test]
    fn who_does_not_wait_need_not_notice() {
        let mut history = HistoryBuilder::new();
        history.at(3_000).take(1, false);
        history.at(5_000).put(0, 7);
        history.end(20_000).holds();
    }

    #[test]
    fn an_item_whose_claim_goes_with_its_session_is_noticed() {
        let mut history = HistoryBuilder::new();
        let item = history.at(3_000).put(0, 7);
        let given = history.at(3_100).give(1, &item, 1);
        let take = history.at(3_200).take(2, true);
        history.at(9_000).end_session(2, EndCause::Forced).held(&given, false).given_back(&given);
        history.link(1, LinkState::Lost);
        history.clone().end(30_000).breaks(Q8);
        history.at(9_100).give(2, &item, 2);
        history.over(2, take).end(30_000).holds();
    }

    #[test]
    fn who_is_cut_off_need_not_notice() {
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
    fn the_first_in_the_line_may_be_one_that_is_cut_off_and_then_the_second_steps_in() {
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
        // Where all are well it takes below 1.5 s.
        claimed_at(7_000).holds();
        claimed_at(9_000).breaks(Q8);
    }

    #[test]
    fn an_item_is_noticed_when_its_time_comes() {
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
    fn what_cannot_be_decoded_is_left_to_others() {
        let mut history = HistoryBuilder::new();
        history.at(3_000).take(1, true);
        let item = history.put(0, 7);
        history.undecodable(&item).end(40_000).holds();
    }
}
