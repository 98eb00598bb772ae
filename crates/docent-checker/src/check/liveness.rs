use crate::analysis::Analysis;
use crate::attempt_trace::AttemptTrace;
use crate::event::Ending;
use crate::spans::{Span, Spans};
use crate::violation::{Found, Invariant, Violation};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// **Liveness**: after all faults have ended, a waiter is granted within a session timeout and two ticks,
/// plus the time for which others hold. In an election the takeover delay of each leader is added. No attempt
/// fails.
///
/// - An acquire of several resources waits while any of them is held, and meanwhile holds the first ones. So
///   an attempt may wait for every resource that is acquired together with its own, also indirectly through
///   other acquires.
/// - Each hand-off takes two round trips.
/// - An attempt is owed nothing after it was cancelled or timed out, or after its client closed or crashed.
///   An attempt that does not wait is owed nothing.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    let Some(calm) = analysis.calm() else { return };
    let (holds, linked) = (holds(analysis), linked(analysis));
    for trace in analysis.attempts.all() {
        if trace.attempt.patience == Some(Duration::ZERO) {
            continue;
        }
        let since = trace.began.max(calm);
        if let Some(waited) = starved(analysis, trace, since, &holds, &linked) {
            let what = format!("it waited {waited:?} without a holder, after all faults had ended:");
            found.push(violation(trace, since + waited, what));
        }
        if let Some((at, Ending::Failed(kind))) = trace.ended
            && since + settling(analysis) < at
            && analysis.leaving(trace.client).is_none_or(|leaving| leaving > at)
        {
            found.push(violation(trace, at, format!("it failed with {kind} after all faults had ended:")));
        }
    }
}

/// Time that a world needs to settle: sessions of dead clients expire, and links are restored.
fn settling(analysis: &Analysis<'_>) -> Duration {
    analysis.facts().expiry() + analysis.tolerances().reconnect
}

/// Time that the attempt waited without a holder, if that was too long.
fn starved(
    analysis: &Analysis<'_>,
    trace: &AttemptTrace<'_>,
    since: Duration,
    holds: &BTreeMap<&str, Holds>,
    linked: &[BTreeSet<&str>],
) -> Option<Duration> {
    let leaving = analysis.leaving(trace.client);
    let end = Some(analysis.facts().end.at);
    let until = [trace.waited_until(), leaving, end].into_iter().flatten().min()?;
    let waited = until.checked_sub(since)?;
    let own = trace.attempt.path.as_str();
    let together = linked.iter().find(|paths| paths.contains(own)).into_iter().flatten().copied();
    let paths = together.filter(|path| *path != own).chain([own]);
    let mut held = Vec::new();
    let mut hand_offs = 0_u32;
    for holds in paths.filter_map(|path| holds.get(path)) {
        held.extend(holds.held.between(since, until));
        hand_offs = hand_offs.saturating_add(holds.grants(since, until));
    }
    let held = Spans::new(held).covered(since, until);
    let tolerances = analysis.tolerances();
    let each = tolerances.round_trip * 2 + tolerances.scheduling;
    let idle = waited.saturating_sub(held);
    // Each leader of an election may have to wait, because its predecessor did not resign.
    let delay = analysis.elections.delay(&trace.attempt.path);
    (idle > settling(analysis) + delay + (each + delay) * hand_offs).then_some(idle)
}

/// Sets of paths that are connected by acquires of several resources.
fn linked<'a>(analysis: &Analysis<'a>) -> Vec<BTreeSet<&'a str>> {
    let mut linked: Vec<BTreeSet<&str>> = Vec::new();
    for group in analysis.attempts.groups() {
        let traces = group.iter().filter_map(|id| analysis.attempts.get(*id));
        let mut paths: BTreeSet<&str> = traces.map(|trace| trace.attempt.path.as_str()).collect();
        linked.retain(|others| {
            let apart = paths.is_disjoint(others);
            if !apart {
                paths.extend(others);
            }
            apart
        });
        linked.push(paths);
    }
    linked
}

/// Times at which some attempt held, at one path.
#[derive(Default)]
struct Holds {
    spans: Vec<Span>,
    held: Spans,
    granted: Vec<Duration>,
}

impl Holds {
    /// Number of grants between two times.
    fn grants(&self, from: Duration, until: Duration) -> u32 {
        let before = |at: Duration| self.granted.partition_point(|granted| *granted <= at);
        u32::try_from(before(until) - before(from)).unwrap_or(u32::MAX)
    }
}

fn holds<'a>(analysis: &Analysis<'a>) -> BTreeMap<&'a str, Holds> {
    let mut holds: BTreeMap<&str, Holds> = BTreeMap::new();
    for trace in analysis.attempts.all() {
        let Some((at, _)) = trace.granted else { continue };
        let path = holds.entry(&trace.attempt.path).or_default();
        // A lost guard that is kept blocks other attempts only until its node is deleted.
        let deleted =
            analysis.node_of(trace).and_then(|(_, node)| node.deleted).map(|deleted| deleted.when.at);
        let until = [trace.given_up(), deleted].into_iter().flatten().min().unwrap_or(Duration::MAX);
        path.spans.push(Span { from: at, until: until.max(at) });
        path.granted.push(at);
    }
    for path in holds.values_mut() {
        path.granted.sort_unstable();
        path.held = Spans::new(std::mem::take(&mut path.spans));
    }
    holds
}

fn violation(trace: &AttemptTrace<'_>, at: Duration, what: String) -> Violation {
    Violation::new(Invariant::M8, at, what)
        .attempt(trace.id())
        .client(trace.client)
        .path(trace.attempt.path.clone())
}

#[cfg(test)]
mod tests {
    use crate::event::{AttemptId, Ending, EventKind};
    use crate::history::{ElectionEvents, HistoryBuilder};
    use crate::violation::Invariant::M8;

    /// One attempt holds until 20 s, another waits. All faults have ended from 1 s on.
    fn waiting() -> (HistoryBuilder, AttemptId) {
        let mut history = HistoryBuilder::new();
        let (first, second) = (history.at(100).begin(0), history.begin(1));
        history.create(first).create(second).at(110).grant(first).at(1_000).world(EventKind::Calm);
        history.at(20_000).dropped(first).delete(first);
        (history, second)
    }

    #[test]
    fn the_time_for_which_another_client_holds_does_not_count() {
        let (mut history, second) = waiting();
        history.at(20_010).grant(second).end(30_000).holds();
    }

    #[test]
    fn a_grant_that_comes_late_is_caught() {
        let (mut history, second) = waiting();
        history.at(29_900).grant(second).end(30_000).breaks(M8);
    }

    #[test]
    fn a_takeover_delay_does_not_count() {
        let waited = |delay: u64| {
            let mut history = HistoryBuilder::new();
            let (first, second) =
                (history.at(100).run_with(0, 7, 0, delay), history.run_with(1, 8, 0, delay));
            history.create(first).create(second).at(110).grant(first).at(1_000).world(EventKind::Calm);
            history.at(20_000).releasing(first).delete(first).at(32_100).grant(second);
            history.end(60_000)
        };
        waited(12_000).holds();
        waited(0).breaks_also(M8);
    }

    #[test]
    fn a_grant_that_never_comes_is_caught() {
        let (history, _) = waiting();
        history.clone().end(25_000).holds();
        history.clone().end(60_000).breaks(M8);
    }

    #[test]
    fn a_waiter_behind_a_client_that_waits_for_another_lock_does_not_starve() {
        let mut history = HistoryBuilder::new();
        let holder = history.at(100).begin_at(0, "/two");
        history.create(holder).at(110).grant(holder);
        let both = ["/one", "/two"].map(|path| history.at(200).begin_at(1, path));
        history.record(1, EventKind::Together(both.to_vec())).create(both[0]).create(both[1]);
        let last = history.at(300).begin_at(2, "/one");
        history.create(last).at(1_000).world(EventKind::Calm);
        let mut late = history.clone();
        history.at(20_000).dropped(holder).delete(holder).at(20_010).grant(both[0]).grant(both[1]);
        history.at(20_020).dropped(both[0]).dropped(both[1]).delete(both[0]).delete(both[1]);
        history.at(20_030).grant(last).end(30_000).holds();
        // No attempt holds what they wait for.
        late.at(1_100).dropped(holder).delete(holder).end(30_000).breaks(M8);
    }

    #[test]
    fn without_calm_an_attempt_may_wait_forever() {
        let mut history = HistoryBuilder::new();
        let attempt = history.at(100).begin(0);
        history.create(attempt).end(60_000).holds();
    }

    #[test]
    fn a_cancelled_attempt_does_not_starve() {
        let (mut history, second) = waiting();
        history.at(20_500).ended(second, Ending::Cancelled).delete(second).end(60_000).holds();
    }

    #[test]
    fn an_attempt_that_fails_in_calm_is_caught() {
        let (mut history, second) = waiting();
        history.at(21_000).ended(second, Ending::Failed("timeout".to_owned())).delete(second).end(60_000);
        history.breaks(M8);
    }
}
