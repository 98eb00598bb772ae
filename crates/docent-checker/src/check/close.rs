use crate::analysis::Analysis;
use crate::event::{ClientId, EventKind};
use crate::journal_replay::NodeLife;
use crate::timeline::Timeline;
use crate::violation::{Found, Invariant, Violation};
use std::collections::BTreeSet;
use std::time::Duration;

/// **Close**: when `close` returns, the servers have ended the client's sessions and deleted their nodes, and
/// the client sends no more requests.
///
/// If no server was reachable meanwhile, the sessions expire later. A shutdown reports every node that it
/// leaves behind.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    for (client, life) in &analysis.clients {
        let Some(closed) = life.closed else { continue };
        for session in analysis.sessions_of(*client) {
            found.extend(still_exists(analysis, *client, life, session, closed));
        }
    }
    for (_, event) in analysis.events() {
        if let (Some(client), EventKind::ShutDown(named)) = (event.client, &event.kind) {
            found.extend(not_named(analysis, client, event.at, named));
        }
        let Some(client) = event.client.filter(|_| matches!(event.kind, EventKind::Requested { .. })) else {
            continue;
        };
        let closed = analysis.life(client).and_then(|life| life.closed);
        if closed.is_some_and(|closed| closed + analysis.tolerances().grain < event.at) {
            let what = format!("sends a request after it was closed: {:?}", event.kind);
            found.push(Violation::new(Invariant::K7, event.at, what).client(client));
        }
    }
}

fn still_exists(
    analysis: &Analysis<'_>,
    client: ClientId,
    life: &Timeline,
    session: i64,
    closed: Duration,
) -> Option<Violation> {
    let tolerances = analysis.tolerances();
    let closing = life.closing.unwrap_or(closed);
    let current = life.links.iter().rev().find_map(|link| link.session) == Some(session);
    // A session that was given up earlier is ended in the background, or expires.
    let reached = current
        && life.rough.spare(closing.saturating_sub(tolerances.reconnect), closed)
        && was_connected(life, closing);
    let due = match reached {
        true => closed + tolerances.grain,
        false => analysis.outages.quiet(closed, analysis.facts().expiry() + tolerances.reconnect)?,
    };
    let ended = analysis.replay.sessions().get(&session)?.ended.map(|(ended, _)| ended.at);
    let remaining = ended.map_or_else(|| analysis.shows(due), |ended| ended > due);
    remaining.then(|| {
        let what = format!("closed at {closed:?}, but its session {session:#x} exists at {due:?}:");
        let violation = Violation::new(Invariant::K7, due, what).client(client);
        let nodes =
            analysis.replay.nodes().iter().filter(|node| node.owner == session && node.is_alive_at(due));
        nodes.fold(violation, |violation, node| violation.path(&node.path))
    })
}

/// Nodes that a shutdown left behind without reporting them. The shutdown does not know nodes whose creation
/// may not have been acknowledged.
fn not_named(analysis: &Analysis<'_>, client: ClientId, at: Duration, named: &[String]) -> Vec<Violation> {
    let Some(life) = analysis.life(client) else { return Vec::new() };
    let sessions: BTreeSet<i64> = analysis.sessions_of(client).collect();
    let tolerances = analysis.tolerances();
    let remaining = |node: &&NodeLife| {
        let created = node.created.at;
        let acknowledged =
            life.apart.spare(created.saturating_sub(tolerances.grain), created + tolerances.round_trip);
        sessions.contains(&node.owner)
            && !is_mark(&node.path)
            && node.is_alive_at(at + tolerances.grain)
            && acknowledged
            && !named.contains(&node.path)
    };
    let remaining = analysis.replay.nodes().iter().filter(remaining);
    let violation = |node: &NodeLife| {
        Violation::new(Invariant::K7, at, "a shutdown left this node without reporting it:")
            .client(client)
            .path(&node.path)
    };
    remaining.map(violation).collect()
}

/// Returns true for a node that no other client waits for: a node in a client's own folder, or the proof of a
/// claim.
pub(super) fn is_mark(path: &str) -> bool {
    let is_own = |rest: &str| rest.is_empty() || rest.starts_with('-');
    path.ends_with("-claim") || path.split('/').any(|name| name.strip_prefix("_docent").is_some_and(is_own))
}

/// Returns true if the client's last report before a time was that it is connected.
fn was_connected(life: &Timeline, at: Duration) -> bool {
    use crate::event::LinkState;
    let before = life.links.iter().take_while(|link| link.at < at).last();
    before.is_some_and(|link| link.state == LinkState::Connected)
}

#[cfg(test)]
mod tests {
    use crate::event::{EventKind, FaultKind, LinkState};
    use crate::history::HistoryBuilder;
    use crate::journal::EndCause::Expired;
    use crate::violation::Invariant::K7;

    #[test]
    fn close_ends_the_session_before_it_returns() {
        let mut history = HistoryBuilder::new();
        history
            .at(3_000)
            .record(0, EventKind::Closing)
            .at(3_100)
            .link(0, LinkState::Closed)
            .record(0, EventKind::Closed);
        history.clone().end(3_101).holds();
        history.clone().end(4_000).breaks(K7);
        history.at(3_200).end_session(1, Expired).end(4_000).breaks(K7);
    }

    #[test]
    fn without_a_server_the_session_expires() {
        let cut = |ended: bool| {
            let mut history = HistoryBuilder::new();
            history
                .at(3_000)
                .fault(0, FaultKind::Cut)
                .record(0, EventKind::Closing)
                .at(5_000)
                .record(0, EventKind::Closed);
            if ended {
                history.at(9_500).end_session(1, Expired);
            }
            history.end(15_000)
        };
        cut(true).holds();
        cut(false).breaks_also(K7);
    }

    #[test]
    fn a_closed_client_sends_no_requests() {
        let mut history = HistoryBuilder::good();
        history.at(500).record(0, EventKind::Requested { op: 11, path: None }).end(1_000).breaks(K7);
    }

    #[test]
    fn a_shutdown_names_the_nodes_that_it_leaves() {
        let shut_down = |named: Vec<String>, deleted: bool| {
            let mut history = HistoryBuilder::new();
            let attempt = history.at(100).begin(0);
            history.create(attempt).at(110).grant(attempt);
            let node = history.node(attempt);
            let named = if named.is_empty() { named } else { vec![node] };
            history
                .at(3_000)
                .fault(0, FaultKind::Cut)
                .record(0, EventKind::Closing)
                .at(3_100)
                .dropped(attempt);
            if deleted {
                history.delete(attempt);
            }
            history.at(4_000).record(0, EventKind::ShutDown(named)).record(0, EventKind::Closed);
            history.at(9_000).end_session(1, Expired).end(15_000)
        };
        shut_down(Vec::new(), true).holds();
        shut_down(vec!["it".to_owned()], false).holds();
        shut_down(Vec::new(), false).breaks(K7);
    }
}
