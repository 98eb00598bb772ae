use crate::analysis::Analysis;
use crate::attempt_trace::AttemptTrace;
use crate::event::ClientId;
use crate::journal_replay::NodeLife;
use crate::violation::{Found, Invariant, Violation};
use std::time::Duration;

/// **Succession**: the candidate that comes first in the line leads within the time of news, which is a
/// second, and the takeover delay of its election, if its client is connected and well.
///
/// It comes first when the leader's node is gone: at once when that resigns, and within a session timeout and
/// two ticks when that fails, of which M6 asks. That somebody leads after all faults is for M8. Where a
/// client has several nodes in the line, the attempt of each is not known before it leads: an unknown node
/// counts when the client needs all of them.
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
    let due = first + tolerances.news + delay;
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
    let what = "it came first in the line and does not lead:";
    let violation = || Violation::new(Invariant::E5, due, what).client(client).path(path).path(&node.path);
    late.then(|| holder.into_iter().fold(violation(), |violation, trace| violation.attempt(trace.id())))
}

/// True when a client waits for at least as many terms as it has nodes in the line.
fn needs_all(analysis: &Analysis<'_>, client: ClientId, path: &str, node: &NodeLife, at: Duration) -> bool {
    let grain = analysis.tolerances().grain;
    let waits = |trace: &&AttemptTrace<'_>| {
        trace.began <= node.created.at + grain && trace.waited_until().is_none_or(|over| over > at)
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

    /// The first one leads until 5 s; the second one waits.
    fn waiting(delay: u64) -> (HistoryBuilder, AttemptId, AttemptId) {
        let mut history = HistoryBuilder::new();
        let (first, second) = (history.at(100).run_with(0, 7, 0, delay), history.run_with(1, 8, 0, delay));
        history.create(first).create(second).at(110).grant(first);
        (history, first, second)
    }

    #[test]
    fn the_next_leads_soon_after_one_that_resigned() {
        let next = |at: u64| {
            let (mut history, first, second) = waiting(0);
            history.at(5_000).releasing(first).delete(first).at(at).grant(second);
            history.end(9_000)
        };
        next(5_190).holds();
        next(5_300).breaks(E5);
    }

    #[test]
    fn the_next_leads_soon_after_the_session_of_one_that_failed_is_over() {
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
    fn who_never_leads_is_caught() {
        let (mut history, first, second) = waiting(0);
        history.at(5_000).releasing(first).delete(first);
        history.clone().end(5_100).holds();
        history.clone().at(5_150).ended(second, Ending::Cancelled).delete(second).end(9_000).holds();
        history.end(9_000).breaks(E5);
    }

    #[test]
    fn of_who_is_cut_off_nothing_is_asked() {
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
