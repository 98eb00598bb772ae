use crate::analysis::Analysis;
use crate::attempt_trace::AttemptTrace;
use crate::event::ClientId;
use crate::journal_replay::NodeLife;
use crate::violation::{Found, Invariant, Violation};
use std::time::Duration;

/// **Succession**: the candidate that becomes first in the line soon leads, if its client is connected and
/// healthy. Soon means the time for a notification, which is a second, plus the takeover delay of its
/// election.
///
/// The candidate becomes first when the leader's node is deleted: immediately if the leader resigns, and
/// within a session timeout and two ticks if the leader fails, which M6 checks. M8 checks that there is a
/// leader after all faults.
///
/// If a client has several nodes in the line, it is unknown which attempt a node belongs to before it leads.
/// Such a node is checked if the client needs all of its nodes.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    for (path, delay) in analysis.elections.delays() {
        for (index, node) in analysis.replay.contenders_in(path) {
            found.extend(late(analysis, path, index, node, *delay));
        }
    }
}

fn late(
    analysis: &Analysis<'_>,
    path: &str,
    index: usize,
    node: &NodeLife,
    delay: Duration,
) -> Option<Violation> {
    let (first, client) = (node.first?.at, analysis.client_of(node.owner)?);
    let tolerances = analysis.tolerances();
    let due = first + tolerances.notification + delay;
    let life = analysis.life(client)?;
    let well = life.apart.spare(first.saturating_sub(tolerances.reconnect), due);
    if !well || !analysis.shows(due) || life.leaving().is_some_and(|leaving| leaving <= due) {
        return None;
    }
    let holder = analysis.holders(index).first().and_then(|id| analysis.attempts.get(*id));
    let late = match holder.and_then(|trace| trace.granted) {
        Some((at, _)) => at > due,
        None => node.is_alive_at(due) && needs_all(analysis, client, path, node, due),
    };
    let what = "it became first in the line, but does not lead:";
    let violation = || Violation::new(Invariant::E5, due, what).client(client).path(path).path(&node.path);
    late.then(|| holder.into_iter().fold(violation(), |violation, trace| violation.attempt(trace.id())))
}

/// Returns true if a client waits for at least as many terms as it has nodes in the line.
fn needs_all(analysis: &Analysis<'_>, client: ClientId, path: &str, node: &NodeLife, at: Duration) -> bool {
    let grain = analysis.tolerances().grain;
    let waits = |trace: &&AttemptTrace<'_>| {
        trace.began <= node.created.at + grain && trace.waited_until().is_none_or(|ended| ended > at)
    };
    let nodes = analysis.replay.contenders_in(path).filter(|(index, node)| {
        analysis.client_of(node.owner) == Some(client)
            && node.is_alive_at(at)
            && analysis.holders(*index).is_empty()
    });
    analysis.attempts.of_client_at(client, path).filter(waits).count() >= nodes.count()
}

#[cfg(test)]
mod tests {
    use crate::event::{AttemptId, Ending, FaultKind, LinkState};
    use crate::history::{ElectionEvents, HistoryBuilder};
    use crate::journal::EndCause::{Expired, Forced};
    use crate::violation::Invariant::E5;

    /// The first candidate leads until 5 s; the second waits.
    fn waiting(delay: u64) -> (HistoryBuilder, AttemptId, AttemptId) {
        let mut history = HistoryBuilder::new();
        let (first, second) = (history.at(100).run_with(0, 7, 0, delay), history.run_with(1, 8, 0, delay));
        history.create(first).create(second).at(110).grant(first);
        (history, first, second)
    }

    #[test]
    fn the_next_candidate_leads_soon_after_a_resignation() {
        let next = |at: u64| {
            let (mut history, first, second) = waiting(0);
            history.at(5_000).releasing(first).delete(first).at(at).grant(second);
            history.end(9_000)
        };
        next(5_190).holds();
        next(5_300).breaks(E5);
    }

    #[test]
    fn the_next_candidate_leads_soon_after_the_session_of_a_failed_leader_ended() {
        let (mut history, first, second) = waiting(0);
        history.at(200).fault(0, FaultKind::Cut).at(4_000).lost(first).dropped(first);
        history.at(6_600).end_session(1, Expired);
        history.clone().at(6_700).grant(second).end(9_000).holds();
        history.at(7_000).grant(second).end(9_000).breaks(E5);
    }

    #[test]
    fn a_takeover_delay_is_waited_for() {
        let (mut history, first, second) = waiting(2_000);
        history
            .at(5_000)
            .fault(0, FaultKind::Expired)
            .end_session(1, Forced)
            .at(5_010)
            .lost(first)
            .dropped(first)
            .link(0, LinkState::Lost);
        history.at(7_100).grant(second).end(9_000).holds();
    }

    #[test]
    fn a_first_candidate_that_never_leads_is_caught() {
        let (mut history, first, second) = waiting(0);
        history.at(5_000).releasing(first).delete(first);
        history.clone().end(5_100).holds();
        history.clone().at(5_150).ended(second, Ending::Cancelled).delete(second).end(9_000).holds();
        history.end(9_000).breaks(E5);
    }

    #[test]
    fn a_candidate_that_is_cut_off_need_not_lead() {
        let (mut history, first, _) = waiting(0);
        history
            .at(4_900)
            .fault(1, FaultKind::Cut)
            .at(5_000)
            .releasing(first)
            .delete(first)
            .end(9_000)
            .holds();
    }
}
