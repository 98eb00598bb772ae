use crate::analysis::{Analysis, End};
use crate::attempt_trace::AttemptTrace;
use crate::violation::{Found, Invariant, Violation};
use std::collections::BTreeMap;
use std::time::Duration;

/// **Exclusion in real time**: from its grant until it is released or known to be lost, a guard is the only
/// one of its path.
///
/// Two guards may overlap only in two cases. If the earlier holder's process is paused for longer than its
/// lease, the overlap lies within that pause and the time to resume. If a third party ended its session or
/// deleted its node, the overlap is no longer than a notification takes. A holder that is cut off has no
/// excuse: it knows before the servers expire its session. Assumed: a clock that always runs with the world,
/// and `lost()` awaited for every guard.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    let exclusive =
        |one: &AttemptTrace<'_>, other: &AttemptTrace<'_>| one.is_exclusive() && other.is_exclusive();
    for overlap in overlapping(analysis, exclusive) {
        found.extend(judge(analysis, Invariant::M3, &overlap));
    }
}

/// Returns the violation, if the overlap has no excuse.
pub(super) fn judge(
    analysis: &Analysis<'_>,
    invariant: Invariant,
    overlap: &Overlap<'_, '_>,
) -> Option<Violation> {
    let Overlap { earlier, later, from, until } = *overlap;
    if is_excused(analysis, earlier, from, until) {
        return None;
    }
    let end = until.map_or_else(|| "without an end".to_owned(), |until| format!("for {:?}", until - from));
    Some(
        Violation::new(invariant, from, format!("two held at the same time, {end}:"))
            .attempt(earlier.id())
            .attempt(later.id())
            .client(earlier.client)
            .client(later.client)
            .path(earlier.attempt.path.clone()),
    )
}

/// Number of pairs of holders that held at the same time.
pub(crate) fn overlaps(analysis: &Analysis<'_>) -> usize {
    overlapping(analysis, |one, other| one.is_exclusive() && other.is_exclusive()).len()
}

#[derive(Clone, Copy)]
pub(super) struct Overlap<'s, 'a> {
    /// The holder whose place is older.
    earlier: &'s AttemptTrace<'a>,
    later: &'s AttemptTrace<'a>,
    from: Duration,
    /// `None` if neither of them ever stopped.
    until: Option<Duration>,
}

/// All pairs of holders of one path that held at the same time and exclude each other.
pub(super) fn overlapping<'s, 'a>(
    analysis: &'s Analysis<'a>,
    exclude: impl Fn(&AttemptTrace<'_>, &AttemptTrace<'_>) -> bool,
) -> Vec<Overlap<'s, 'a>> {
    let mut by_path: BTreeMap<&str, Vec<(Duration, &AttemptTrace<'_>)>> = BTreeMap::new();
    for trace in analysis.attempts.all() {
        if let Some((at, _)) = trace.granted {
            by_path.entry(&trace.attempt.path).or_default().push((at, trace));
        }
    }
    let mut overlaps = Vec::new();
    for mut grants in by_path.into_values() {
        grants.sort_by_key(|(at, _)| *at);
        let mut holding: Vec<&AttemptTrace<'_>> = Vec::new();
        for (at, trace) in grants {
            // A holder that stops and one that begins at the same time do not overlap, because the clock of a
            // run moves in steps.
            holding.retain(|other| other.until().is_none_or(|until| until > at));
            let excluded = holding.iter().filter(|other| exclude(other, trace));
            let pairs = excluded.map(|other| overlap(analysis, other, trace, at));
            // A hold may end at the moment at which it began.
            overlaps.extend(pairs.filter(|pair| pair.until.is_none_or(|until| until > at)));
            holding.push(trace);
        }
    }
    overlaps
}

fn overlap<'s, 'a>(
    analysis: &Analysis<'_>,
    one: &'s AttemptTrace<'a>,
    other: &'s AttemptTrace<'a>,
    from: Duration,
) -> Overlap<'s, 'a> {
    let until = [one.until(), other.until()].into_iter().flatten().min();
    let (earlier, later) =
        if place(analysis, other) < place(analysis, one) { (other, one) } else { (one, other) };
    Overlap { earlier, later, from, until }
}

/// Transaction since which the holder had its place. A downgraded writer has it since it joined as a writer;
/// its fence contains that transaction.
fn place(analysis: &Analysis<'_>, trace: &AttemptTrace<'_>) -> Option<i64> {
    let fence = trace.granted.and_then(|(_, grant)| grant.fence).filter(|_| trace.is_shared());
    let fence = fence.and_then(|fence| i64::try_from(fence).ok());
    fence.or_else(|| analysis.node_of(trace).map(|(_, node)| node.created.zxid))
}

fn is_excused(
    analysis: &Analysis<'_>,
    earlier: &AttemptTrace<'_>,
    from: Duration,
    until: Option<Duration>,
) -> bool {
    let (Some((_, node)), Some(life)) = (analysis.node_of(earlier), analysis.life(earlier.client)) else {
        return false;
    };
    let Some(deleted) = node.deleted else { return false };
    // An overlap that has not ended when the run ends may still be in time.
    let until = until.unwrap_or(analysis.facts().end.at);
    let scheduling = analysis.tolerances().scheduling;
    let was_paused =
        life.frozen.last_by(from).is_some_and(|frozen| until <= frozen.until.saturating_add(scheduling));
    let notified_in_time = || analysis.notice(earlier.client, node).is_some_and(|due| until <= due);
    was_paused || analysis.end_of(node, deleted) == End::ThirdParty && notified_in_time()
}

#[cfg(test)]
mod tests {
    use crate::event::{AttemptId, FaultKind};
    use crate::history::HistoryBuilder;
    use crate::journal::EndCause::{Expired, Forced};
    use crate::violation::Invariant::{M3, M11};

    fn waiting() -> (HistoryBuilder, AttemptId, AttemptId) {
        let mut history = HistoryBuilder::new();
        let (first, second) = (history.at(100).begin(0), history.begin(1));
        history.create(first).create(second).at(110).grant(first);
        (history, first, second)
    }

    #[test]
    fn a_holder_that_is_cut_off_has_no_excuse() {
        let cut = |lost_at: u64| {
            let (mut history, first, second) = waiting();
            history.at(200).fault(0, FaultKind::Cut);
            if lost_at < 6_510 {
                history.at(lost_at).lost(first);
            }
            history.at(6_510).end_session(1, Expired).at(6_520).grant(second);
            if lost_at > 6_510 {
                history.at(lost_at).lost(first);
            }
            history.end(6_900)
        };
        cut(4_200).holds();
        assert_eq!(cut(6_600).broken(), [M3, M11]);
    }

    #[test]
    fn a_paused_holder_is_excused_until_it_resumes() {
        let frozen = |woke_at: u64, lost_at: u64| {
            let (mut history, first, second) = waiting();
            history
                .at(200)
                .fault(0, FaultKind::Frozen)
                .at(6_510)
                .end_session(1, Expired)
                .at(6_520)
                .grant(second);
            history.at(woke_at).heal(0, FaultKind::Frozen).at(lost_at).lost(first);
            history.end(9_000)
        };
        frozen(8_000, 8_050).holds();
        assert_eq!(frozen(8_000, 8_500).broken(), [M3, M11]);
    }

    #[test]
    fn a_pause_that_had_ended_is_no_excuse() {
        let (mut history, first, second) = waiting();
        history.at(200).fault(0, FaultKind::Frozen).at(900).heal(0, FaultKind::Frozen);
        history.at(6_510).end_session(1, Expired).at(6_520).grant(second).at(6_600).lost(first);
        history.end(9_000).breaks_also(M3);
    }

    #[test]
    fn a_forced_session_end_is_noticed_within_the_notification_delay() {
        let taken = |lost_at: u64| {
            let (mut history, first, second) = waiting();
            history.at(200).fault(0, FaultKind::Expired).end_session(1, Forced).at(203).grant(second);
            history.at(lost_at).lost(first);
            history.end(2_000)
        };
        taken(300).holds();
        assert_eq!(taken(500).broken(), [M3, M11]);
    }

    #[test]
    fn a_client_that_is_cut_off_when_its_session_is_ended_notices_by_its_lease() {
        let taken = |lost_at: u64| {
            let (mut history, first, second) = waiting();
            history.at(150).fault(0, FaultKind::Cut).at(200).fault(0, FaultKind::Expired);
            history.end_session(1, Forced).at(203).grant(second).at(lost_at).lost(first);
            history.end(9_000)
        };
        taken(4_100).holds();
        taken(6_300).breaks_also(M3);
    }

    #[test]
    fn a_client_that_deletes_its_node_while_it_holds_is_caught() {
        let (mut history, first, second) = waiting();
        history.at(200).delete(first).at(203).grant(second).at(300).dropped(first).end(1_000).breaks_also(M3);
    }

    #[test]
    fn a_hold_of_no_duration_overlaps_with_no_other() {
        let mut history = HistoryBuilder::new();
        let (second, first) = (history.at(100).begin(1), history.begin(0));
        history.create(first).create(second).at(110).grant(first).dropped(first).delete(first).grant(second);
        history.at(200).dropped(second).delete(second).end(1_000).holds();
    }

    #[test]
    fn an_overlap_that_never_ends_is_caught() {
        let (mut history, _, second) = waiting();
        history.at(200).end_session(1, Expired).at(203).grant(second).end(9_000).breaks_also(M3);
    }
}
