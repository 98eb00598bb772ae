use crate::analysis::Analysis;
use crate::attempt_trace::AttemptTrace;
use crate::event::{AttemptId, ClientId};
use crate::journal_replay::NodeLife;
use crate::spans::Span;
use crate::violation::{Found, Invariant, Violation};
use std::time::Duration;

/// **No orphan**: every node in a line has a reason that still applies. If its attempt failed, was cancelled,
/// given up or lost, the node is deleted after its client was connected and healthy for a moment, or else
/// when its session expires. No client has more nodes in a line than attempts.
///
/// Assumed: no third party creates nodes in a session of the run's clients. A lost guard that is not dropped
/// keeps its node for a margin. If one of several resources is lost only because another one was, its node
/// exists until the guard is dropped.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    for (index, node) in analysis.replay.contenders() {
        if let Some(client) = analysis.client_of(node.owner) {
            found.extend(orphan(analysis, client, index, node));
        }
    }
    for (client, path) in analysis.attempts.clients_and_paths() {
        found.extend(surplus(analysis, client, path));
    }
}

/// Finds a node that outlived its reason.
fn orphan(analysis: &Analysis<'_>, client: ClientId, index: usize, node: &NodeLife) -> Option<Violation> {
    // If several attempts have turns with one node, the last one counts.
    let mut holders = analysis.holders(index).iter().filter_map(|id| analysis.attempts.get(*id));
    let (reason, attempt) = match holders.next() {
        Some(holder) => {
            let mut last = (needed_by(analysis, holder)?, Some(holder.id()));
            for other in holders {
                last = last.max((needed_by(analysis, other)?, Some(other.id())));
            }
            last
        }
        None => waited_for(analysis, client, node)?,
    };
    let due = due(analysis, client, node, reason)?;
    let deleted = node.deleted.map(|deleted| deleted.when.at);
    if deleted.is_some_and(|deleted| deleted <= due) || deleted.is_none() && !analysis.shows(due) {
        return None;
    }
    let late = deleted.map_or_else(
        || "is never deleted".to_owned(),
        |deleted| format!("is deleted {:?} late", deleted - due),
    );
    let what = format!("a node that is unused since {:.4} {late}:", reason.as_secs_f64());
    let violation =
        Violation::new(Invariant::M6, due, what).client(client).path(node.folder()).path(&node.path);
    Some(match attempt {
        Some(attempt) => violation.attempt(attempt),
        None => violation,
    })
}

/// Time until which the node of a guard is needed; `None` while it still is.
fn needed_by(analysis: &Analysis<'_>, holder: &AttemptTrace<'_>) -> Option<Duration> {
    let lost = holder.learned_lost().filter(|lost| !is_lost_with_another(analysis, holder, *lost));
    let lost = lost.map(|lost| lost + analysis.facts().margin());
    [holder.given_up(), lost].into_iter().flatten().min()
}

/// Returns true if the node of another resource of the same group had been deleted when the loss was
/// reported.
fn is_lost_with_another(analysis: &Analysis<'_>, holder: &AttemptTrace<'_>, lost: Duration) -> bool {
    let by = lost + analysis.tolerances().grain;
    let mut others = analysis.attempts.together(holder.id()).filter(|other| other.id() != holder.id());
    others.any(|other| {
        let deleted = analysis.node_of(other).and_then(|(_, node)| node.deleted);
        deleted.is_some_and(|deleted| deleted.when.at <= by)
    })
}

/// Time until which the node of a waiter is needed, with the attempt; `None` while it still is. If a client
/// has several attempts, it is unknown which one the node belongs to: the last one counts.
fn waited_for(
    analysis: &Analysis<'_>,
    client: ClientId,
    node: &NodeLife,
) -> Option<(Duration, Option<AttemptId>)> {
    let created = node.created.at;
    let waits = analysis.attempts.waits(client, node.folder());
    let begun = waits.partition_point(|wait| wait.began <= created + analysis.tolerances().grain);
    let Some(wait) = begun.checked_sub(1).map(|last| &waits[last]) else { return Some((created, None)) };
    let (mut end, mut attempt) = wait.last?;
    if analysis.attempts.are_sharing(node.folder()) {
        // An attempt that began before the place was left continues to wait in it.
        for wait in &waits[begun..] {
            if wait.began > end {
                break;
            }
            (end, attempt) = wait.last?;
        }
    }
    Some(if end < created { (created, None) } else { (end, Some(attempt)) })
}

/// Time by which a node without a reason must be deleted.
pub(super) fn due(
    analysis: &Analysis<'_>,
    client: ClientId,
    node: &NodeLife,
    reason: Duration,
) -> Option<Duration> {
    let life = analysis.life(client)?;
    let (facts, tolerances) = (analysis.facts(), analysis.tolerances());
    if let Some(stopped) = life.crashed.or(life.closed) {
        // No client is left to delete the node: it is deleted with its session, for which a server that
        // restarts allows the full timeout.
        let last = analysis.outages.quiet(stopped.max(reason), facts.expiry() + tolerances.reconnect)?;
        let session_ended = analysis.replay.sessions().get(&node.owner).and_then(|session| session.ended);
        if session_ended.is_none_or(|(ended, _)| ended.at > stopped) {
            return Some(last);
        }
    }
    life.apart.quiet(reason, tolerances.cleanup).map(|due| due + tolerances.round_trip + tolerances.grain)
}

/// Finds a client with more nodes than attempts, for longer than anything explains.
fn surplus(analysis: &Analysis<'_>, client: ClientId, path: &str) -> Option<Violation> {
    let life = analysis.life(client)?;
    let end = [life.crashed, Some(analysis.facts().end.at)].into_iter().flatten().min()?;
    for Span { from, until } in surpluses(analysis, client, path, end) {
        let Some(due) = life.apart.quiet(from, analysis.tolerances().cleanup) else { continue };
        if due < until {
            let what = format!("it has more nodes in the line than attempts for {:?}:", until - from);
            return Some(Violation::new(Invariant::M6, due, what).client(client).path(path));
        }
    }
    None
}

fn surpluses(analysis: &Analysis<'_>, client: ClientId, path: &str, end: Duration) -> Vec<Span> {
    let mut steps: Vec<(Duration, i64)> = Vec::new();
    for (_, node) in analysis.replay.contenders_in(path) {
        if analysis.client_of(node.owner) == Some(client) {
            steps.push((node.created.at, 1));
            steps.extend(node.deleted.map(|deleted| (deleted.when.at, -1)));
        }
    }
    for trace in analysis.attempts.of_client_at(client, path) {
        steps.push((trace.began, -1));
        let end = trace.granted.map_or_else(|| trace.waited_until(), |_| trace.given_up());
        steps.extend(end.map(|end| (end, 1)));
    }
    // At the same time, the steps that lower the surplus come first.
    steps.sort_unstable();
    let mut spans = Vec::new();
    let (mut surplus, mut since) = (0, None);
    for (at, step) in steps {
        surplus += step;
        match (surplus > 0, since) {
            (true, None) => since = Some(at),
            (false, Some(from)) => {
                spans.push(Span { from, until: at });
                since = None;
            }
            _ => {}
        }
    }
    spans.extend(since.map(|from| Span { from, until: end }));
    spans
}

#[cfg(test)]
mod tests {
    use crate::event::{Ending, EventKind, FaultKind, LinkState};
    use crate::history::HistoryBuilder;
    use crate::journal::EndCause::Expired;
    use crate::violation::Invariant::M6;

    #[test]
    fn the_node_of_a_cancelled_attempt_is_deleted_soon() {
        let mut history = HistoryBuilder::new();
        let attempt = history.at(100).begin(0);
        history.ended(attempt, Ending::Cancelled).at(105).create(attempt);
        history.clone().at(1_500).delete(attempt).end(9_000).holds();
        history.clone().end(1_000).holds();
        history.clone().at(3_000).delete(attempt).end(9_000).breaks(M6);
        history.end(9_000).breaks(M6);
    }

    #[test]
    fn a_node_may_stay_while_its_client_is_cut_off() {
        let mut history = HistoryBuilder::new();
        let attempt = history.at(100).begin(0);
        history.create(attempt).at(200).fault(0, FaultKind::Cut).ended(attempt, Ending::Cancelled);
        history.at(2_000).link(0, LinkState::Suspended).at(5_000).heal(0, FaultKind::Cut);
        history.at(5_500).link(0, LinkState::Connected);
        history.clone().at(7_000).delete(attempt).end(9_000).holds();
        history.at(8_000).delete(attempt).end(9_000).breaks(M6);
    }

    #[test]
    fn a_create_that_is_doubled_is_caught_while_it_waits() {
        let mut history = HistoryBuilder::new();
        let attempt = history.at(100).begin(0);
        history.create(attempt).at(300).create(attempt);
        history.clone().at(400).delete_path("/nothing", 1).end(2_000).holds();
        history.end(9_000).breaks_also(M6);
        assert!(history.sentences(M6)[0].contains("more nodes in the line than attempts"));
    }

    #[test]
    fn a_doubled_create_behind_a_grant_is_caught() {
        let mut history = HistoryBuilder::new();
        let attempt = history.at(100).begin(0);
        history.create(attempt).at(110).grant(attempt).at(120).create(attempt);
        history.end(9_000).breaks(M6);
    }

    #[test]
    fn a_node_of_no_attempt_is_caught() {
        let mut history = HistoryBuilder::new();
        let attempt = history.at(100).begin(0);
        history.at(110).ended(attempt, Ending::TimedOut).at(500).create(attempt).end(9_000).breaks_also(M6);
    }

    #[test]
    fn a_node_may_be_that_of_any_attempt_which_began_before_it() {
        let two = |first_ended: u64| {
            let mut history = HistoryBuilder::new();
            let (first, second) = (history.at(100).begin(0), history.at(110).begin(0));
            history.create(second).at(200).ended(second, Ending::Cancelled);
            history.at(first_ended).ended(first, Ending::Cancelled);
            (history, second)
        };
        let (mut history, node) = two(8_000);
        history.clone().at(8_100).delete(node).end(20_000).holds();
        history.end(20_000).breaks(M6);
        let (mut history, node) = two(300);
        history.at(8_100).delete(node).end(20_000).breaks(M6);
    }

    #[test]
    fn a_node_that_an_attempt_leaves_belongs_to_the_attempts_that_share_it() {
        let history = |shares: bool| {
            let mut history = HistoryBuilder::new();
            let first = history.at(100).begin(0);
            history.create(first).at(110);
            if shares {
                history.grant_turn(first)
            } else {
                history.grant(first)
            };
            history.at(200).dropped(first).delete(first);
            let left = history.at(300).begin(0);
            let waits = history.create(left).at(350).begin(0);
            history.at(400).ended(left, Ending::Cancelled).at(8_000).ended(waits, Ending::Cancelled);
            (history, left)
        };
        let (mut shared, node) = history(true);
        shared.clone().at(8_050).delete(node).end(20_000).holds();
        shared.end(20_000).breaks(M6);
        let (mut apart, node) = history(false);
        apart.at(8_050).delete(node).end(20_000).breaks(M6);
    }

    #[test]
    fn the_node_of_a_dropped_guard_is_deleted() {
        let mut history = HistoryBuilder::new();
        let attempt = history.at(100).begin(0);
        history.create(attempt).at(110).grant(attempt).at(200).dropped(attempt);
        history.clone().at(202).delete(attempt).end(9_000).holds();
        history.end(9_000).breaks_also(M6);
    }

    #[test]
    fn a_node_that_is_given_up_over_a_broken_link_is_deleted_after_the_reconnect() {
        let history = |noticed: bool| {
            let mut history = HistoryBuilder::new();
            let attempt = history.at(100).begin(0);
            history.create(attempt).at(110).grant(attempt).at(200).fault(0, FaultKind::CutToServer);
            history.at(300).dropped(attempt).at(500).heal(0, FaultKind::CutToServer);
            if noticed {
                history.at(3_500).link(0, LinkState::Suspended).at(3_510).link(0, LinkState::Connected);
            }
            history.at(3_520).delete(attempt).end(9_000)
        };
        history(true).holds();
        history(false).breaks_also(M6);
    }

    #[test]
    fn the_node_of_a_client_that_crashed_without_a_quorum_stays_for_longer() {
        let history = |cut_off: bool| {
            let mut history = HistoryBuilder::new();
            let attempt = history.at(100).begin(0);
            history.create(attempt).at(110).grant(attempt);
            if cut_off {
                history.at(150).world(EventKind::Fault(FaultKind::CutOff));
            }
            history.at(200).record(0, EventKind::Crashed);
            if cut_off {
                history.at(15_000).world(EventKind::Healed(FaultKind::CutOff));
            }
            history.at(21_000).delete(attempt).end(60_000)
        };
        history(true).holds();
        history(false).breaks(M6);
    }

    #[test]
    fn the_node_of_a_lost_guard_is_deleted_a_margin_later() {
        let mut history = HistoryBuilder::new();
        let attempt = history.at(100).begin(0);
        history.create(attempt).at(110).grant(attempt).at(200).fault(0, FaultKind::Cut);
        history.at(2_000).link(0, LinkState::Suspended).at(4_000).lost(attempt);
        history.at(4_500).heal(0, FaultKind::Cut).link(0, LinkState::Connected);
        history.clone().at(6_100).delete(attempt).end(12_000).holds();
        history.end(12_000).breaks(M6);
    }

    #[test]
    fn a_node_that_is_lost_with_another_is_kept_until_its_guard_is_dropped() {
        let mut history = HistoryBuilder::new();
        let both = ["/one", "/two"].map(|path| history.at(2_100).begin_at(0, path));
        history.record(0, EventKind::Together(both.to_vec())).create(both[0]).create(both[1]);
        history.at(2_110).grant(both[0]).grant(both[1]);
        let node = history.node(both[0]);
        history.at(2_200).delete_path(&node, 9).at(2_202).lost(both[0]).lost(both[1]);
        history.at(12_000).dropped(both[0]).dropped(both[1]);
        history.clone().delete(both[1]).end(20_000).holds();
        history.end(20_000).breaks_also(M6);
    }

    #[test]
    fn nodes_that_are_lost_at_the_same_time_are_not_kept() {
        let mut history = HistoryBuilder::new();
        let both = ["/one", "/two"].map(|path| history.at(100).begin_at(0, path));
        history.record(0, EventKind::Together(both.to_vec())).create(both[0]).create(both[1]);
        history.at(110).grant(both[0]).grant(both[1]).at(200).fault(0, FaultKind::Cut);
        history.at(2_000).link(0, LinkState::Suspended).at(4_000).lost(both[0]).lost(both[1]);
        history.at(4_500).heal(0, FaultKind::Cut).link(0, LinkState::Connected);
        history.clone().at(6_100).delete(both[0]).delete(both[1]).end(12_000).holds();
        history.at(6_100).delete(both[0]).end(12_000).breaks(M6);
    }

    #[test]
    fn the_nodes_of_a_crashed_client_are_deleted_with_its_session() {
        let mut history = HistoryBuilder::new();
        let attempt = history.at(100).begin(0);
        history.create(attempt).at(200).record(0, EventKind::Crashed);
        history.clone().at(6_600).end_session(1, Expired).end(20_000).holds();
        history.end(20_000).breaks_also(M6);
    }
}
