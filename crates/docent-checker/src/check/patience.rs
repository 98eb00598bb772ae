use crate::analysis::Analysis;
use crate::attempt_trace::AttemptTrace;
use crate::event::Ending;
use crate::timeline::Timeline;
use crate::violation::{Found, Invariant, Violation};
use std::time::Duration;

/// **Patience**: an attempt waits as long as requested and no longer. It times out no earlier than its
/// deadline, and ends at most one round trip and 100 ms after it. Only an attempt that does not wait may end
/// with `Busy`.
///
/// While its process is paused no attempt ends. An attempt that does not wait takes its round trips, and is
/// checked only if the link was healthy; it may take at most the operation's deadline. M6 checks the nodes
/// that it leaves behind.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    for trace in analysis.attempts.all() {
        let wrong = [too_early(analysis, trace), too_late(analysis, trace)];
        found.extend(wrong.into_iter().flatten().map(|(at, what)| {
            Violation::new(Invariant::M12, at, what)
                .attempt(trace.id())
                .client(trace.client)
                .path(trace.attempt.path.clone())
        }));
    }
}

/// Number of requests of an attempt that does not wait, for each requested resource: listing, parents,
/// ticket, proof, some of them twice.
const TRIPS: u32 = 10;
const SLACK: Duration = Duration::from_millis(100);

fn too_early(analysis: &Analysis<'_>, trace: &AttemptTrace<'_>) -> Option<(Duration, String)> {
    let (at, ending) = trace.ended?;
    let what = match (ending, trace.attempt.patience) {
        (Ending::Busy, patience) if patience != Some(Duration::ZERO) => {
            "ended as busy, but was to wait:".to_owned()
        }
        (Ending::TimedOut, None) => "timed out, but was to wait without a limit:".to_owned(),
        (Ending::TimedOut, Some(patience)) if at + analysis.tolerances().grain < trace.began + patience => {
            format!("timed out {:?} before its deadline:", trace.began + patience - at)
        }
        _ => return None,
    };
    Some((at, what))
}

fn too_late(analysis: &Analysis<'_>, trace: &AttemptTrace<'_>) -> Option<(Duration, String)> {
    let patience = trace.attempt.patience?;
    let life = analysis.life(trace.client)?;
    let due = match patience {
        Duration::ZERO => due_at_once(analysis, trace, life)?,
        _ => trace.began + patience + analysis.tolerances().round_trip + SLACK,
    };
    let due = life.awake(due, SLACK);
    match trace.waited_until() {
        Some(ended) if ended > due => Some((ended, format!("ended {:?} too late:", ended - due))),
        Some(_) => None,
        None if analysis.shows(due) && life.leaving().is_none() => {
            Some((due, "did not end in time:".to_owned()))
        }
        None => None,
    }
}

fn due_at_once(analysis: &Analysis<'_>, trace: &AttemptTrace<'_>, life: &Timeline) -> Option<Duration> {
    let things = analysis.attempts.together(trace.id()).count().max(1);
    let trips = TRIPS * u32::try_from(things).unwrap_or(u32::MAX);
    let due = trace.began + analysis.tolerances().round_trip * trips + SLACK;
    let reconnect = analysis.tolerances().reconnect;
    life.apart.spare(trace.began.saturating_sub(reconnect), due).then_some(due)
}

#[cfg(test)]
mod tests {
    use crate::event::{AttemptId, Ending, FaultKind};
    use crate::history::HistoryBuilder;
    use crate::violation::Invariant::M12;

    /// An attempt that begins at 5 s, behind one that holds.
    fn waiting(patience: u64) -> (HistoryBuilder, AttemptId) {
        let mut history = HistoryBuilder::new();
        let first = history.at(100).begin(0);
        history.create(first).at(110).grant(first);
        let second = history.at(5_000).begin_for(1, patience);
        history.create(second);
        (history, second)
    }

    fn second_ended(patience: u64, at: u64, ending: Ending) -> HistoryBuilder {
        let (mut history, second) = waiting(patience);
        history.at(at).ended(second, ending).delete(second);
        history.end(9_000)
    }

    #[test]
    fn an_attempt_times_out_at_its_deadline() {
        second_ended(1_000, 6_000, Ending::TimedOut).holds();
        second_ended(1_000, 6_110, Ending::TimedOut).holds();
        second_ended(1_000, 5_900, Ending::TimedOut).breaks(M12);
        second_ended(1_000, 6_200, Ending::TimedOut).breaks(M12);
    }

    #[test]
    fn only_an_attempt_that_does_not_wait_ends_as_busy() {
        second_ended(0, 5_050, Ending::Busy).holds();
        second_ended(1_000, 5_050, Ending::Busy).breaks(M12);
    }

    #[test]
    fn an_attempt_that_does_not_wait_ends_soon() {
        second_ended(0, 5_400, Ending::Busy).breaks(M12);
    }

    #[test]
    fn an_attempt_without_a_deadline_does_not_time_out() {
        let mut history = HistoryBuilder::new();
        let attempt = history.at(100).begin(0);
        history.create(attempt).at(3_000).ended(attempt, Ending::TimedOut).delete(attempt);
        history.end(4_000).breaks(M12);
    }

    #[test]
    fn a_grant_after_the_deadline_is_late() {
        let mut history = HistoryBuilder::new();
        let attempt = history.at(100).begin_for(0, 1_000);
        history.create(attempt).at(3_000).grant(attempt).end(4_000).breaks(M12);
    }

    #[test]
    fn an_attempt_that_never_ends_is_late() {
        let (history, _) = waiting(1_000);
        history.clone().end(6_050).holds();
        history.clone().end(9_000).breaks(M12);
    }

    #[test]
    fn a_paused_client_may_time_out_late() {
        let (mut history, second) = waiting(1_000);
        history.at(5_500).fault(1, FaultKind::Frozen).at(7_000).heal(1, FaultKind::Frozen);
        history.clone().at(7_050).ended(second, Ending::TimedOut).delete(second).end(9_000).holds();
        history.at(7_300).ended(second, Ending::TimedOut).delete(second).end(9_000).breaks(M12);
    }
}
