use crate::analysis::Analysis;
use crate::queues::{Queues, Take};
use crate::spans::{Span, Spans};
use crate::violation::{Found, Invariant, Violation};
use std::collections::BTreeMap;
use std::time::Duration;

/// **A free item is noticed**: while an item has no claim, and a consumer waits for one, there is a claim of
/// some item soon: within the time for news, a few round trips, and two looks at the clock. So is an item
/// whose claim went with a session.
///
/// Nothing is asked while anything is wrong with a consumer that waits there, or was a moment before: only
/// the first in the line watches, and that may be one that is cut off, or has died, until its session ends.
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
        let end = item.node.gone.map_or(Duration::MAX, |gone| gone.when.at);
        let mut from = item.node.created.at;
        for claim in &item.claims {
            stock.free.push(Span { from, until: claim.created.at });
            stock.claimed.push(claim.created.at);
            from = claim.gone.map_or(Duration::MAX, |gone| gone.when.at);
        }
        if from < end {
            stock.free.push(Span { from, until: end });
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
    /// Two looks at the clock, and the time for which a listing is used.
    const LOOKS: Duration = Duration::from_millis(2_500);
    let tolerances = analysis.tolerances();
    // A server may be four ticks behind.
    let lag = analysis.facts().tick * 4;
    tolerances.news + lag * 2 + tolerances.round_trip * 20 + tolerances.scheduling + LOOKS
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
                let Some(well) = wrong_until(analysis, queues, take, from, from + patience) else {
                    return Some(Span { from, until: claimed });
                };
                from = well;
            }
            from = claimed;
        }
    }
    None
}

/// Time until which something was wrong with a consumer that waited at a queue between two times; `None` when
/// nothing was.
fn wrong_until(
    analysis: &Analysis<'_>,
    queues: &Queues<'_>,
    take: &Take<'_>,
    from: Duration,
    until: Duration,
) -> Option<Duration> {
    let rough = |client| {
        let apart = analysis.life(client).map(|life| &life.apart)?;
        let reconnect = analysis.tolerances().reconnect;
        let last = apart.between(from.saturating_sub(reconnect), until).last()?;
        Some(last.until.saturating_add(reconnect))
    };
    let waiting = queues.idle.iter().filter(|(queue, _)| *queue == take.path).filter_map(|(_, node)| {
        let gone = node.gone.map_or(Duration::MAX, |gone| gone.when.at);
        if node.created.at > until || gone < from {
            return None;
        }
        match analysis.client_of(node.owner) {
            Some(client) if analysis.leaving(client).is_none_or(|leaving| leaving > until) => {
                rough(client).map(|rough| rough.min(gone))
            }
            // Until its node is gone it may be the first in the line.
            _ => Some(gone),
        }
    });
    let wrong = waiting.max().max(rough(take.client));
    // It goes on.
    wrong.map(|wrong| wrong.max(from.saturating_add(Duration::from_nanos(1))))
}

#[cfg(test)]
mod tests {
    use crate::event::{FaultKind, LinkState};
    use crate::history::{HistoryBuilder, QueueEvents};
    use crate::journal::EndCause;
    use crate::violation::Invariant::{Q8, Q9};

    #[test]
    fn an_item_is_claimed_soon_after_it_was_put() {
        let mut history = HistoryBuilder::new();
        let take = history.at(3_000).take(1, true);
        let item = history.at(5_000).put(0, 7);
        history.clone().end(9_000).holds();
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
    fn the_first_in_the_line_may_be_the_one_that_is_cut_off() {
        let mut history = HistoryBuilder::new();
        history.at(3_000).take(1, true);
        history.take(2, true);
        let place = history.idle(2);
        history.at(4_000).fault(2, FaultKind::Cut).link(2, LinkState::Suspended);
        history.at(5_000).put(0, 7);
        history.end(20_000).holds();
        history.at(20_000).delete_path(&place, 3).end(40_000).breaks_also(Q8);
        assert!(!history.broken().contains(&Q9));
    }
}
