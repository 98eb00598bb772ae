use crate::analysis::Analysis;
use crate::attempt_trace::AttemptTrace;
use crate::event::ClientId;
use crate::violation::{Found, Invariant, Violation};
use std::collections::{BTreeMap, BTreeSet};

/// **Nothing is left behind**: at the end a session has no more watches than its attempts need (two to wait,
/// one to hold), and clients that closed have neither sessions nor nodes.
///
/// Assumed: the end state was read when no call was in progress. To see the watches of clients, it was read
/// before they closed, because a session that ends removes its watches. Clients that watch anything besides
/// lines cannot be checked in this way.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    let end = &analysis.facts().end;
    let mut needed: BTreeMap<ClientId, usize> = BTreeMap::new();
    for trace in analysis.attempts.all() {
        *needed.entry(trace.client).or_default() += watches(trace);
    }
    for (session, watches) in &end.sessions {
        let client = analysis.client_of(*session);
        let most = client.and_then(|client| needed.get(&client)).copied().unwrap_or(0);
        if *watches > most {
            let what = format!("session {session:#x} has {watches} watches at the end, but needs {most}:");
            let violation = Violation::new(Invariant::K5, end.at, what);
            found.push(client.into_iter().fold(violation, Violation::client));
        }
    }
    let all: usize = needed.values().sum();
    if end.watches > all {
        let what = format!("there are {} watches at the end, but {all} are needed:", end.watches);
        found.push(Violation::new(Invariant::K5, end.at, what));
    }
    closed_clients(analysis, found);
}

/// Number of watches that an attempt needs: two while it waits, on the contender ahead and on its own node;
/// one while it holds, on its own node.
fn watches(trace: &AttemptTrace<'_>) -> usize {
    match (trace.waited_until(), trace.granted) {
        (None, _) => 2,
        (Some(_), Some(_)) if trace.given_up().is_none() => 1,
        _ => 0,
    }
}

fn closed_clients(analysis: &Analysis<'_>, found: &mut Found) {
    let end = &analysis.facts().end;
    let nodes: BTreeSet<&str> = end.nodes.iter().map(String::as_str).collect();
    let closed = |session: &i64| {
        let client = analysis.client_of(*session)?;
        // Time by which the session has expired, even if `close` failed.
        let expired =
            analysis.life(client)?.closed? + analysis.facts().expiry() + analysis.tolerances().reconnect;
        analysis
            .outages
            .quiet(expired, analysis.facts().expiry())
            .is_some_and(|end_of_outages| end_of_outages <= end.at)
            .then_some(client)
    };
    for session in end.sessions.keys() {
        if let Some(client) = closed(session) {
            let what = format!("session {session:#x} of a closed client remains at the end:");
            found.push(Violation::new(Invariant::K5, end.at, what).client(client));
        }
    }
    for node in
        analysis.replay.nodes().iter().filter(|node| node.owner != 0 && nodes.contains(node.path.as_str()))
    {
        if let Some(client) = closed(&node.owner) {
            let what = "a node of a closed client remains at the end:";
            found.push(Violation::new(Invariant::K5, end.at, what).client(client).path(&node.path));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::event::EventKind;
    use crate::history::HistoryBuilder;
    use crate::violation::Invariant::{K5, K7};

    fn with_watches(watches: usize) -> HistoryBuilder {
        let mut history = HistoryBuilder::new();
        let (first, second) = (history.at(100).begin(0), history.begin(1));
        history.create(first).create(second).at(110).grant(first);
        let mut history = history.end(1_000);
        history.run.facts.end.sessions.insert(2, watches);
        history.run.facts.end.watches = watches + 1;
        history
    }

    #[test]
    fn a_waiter_has_two_watches() {
        with_watches(2).holds();
        with_watches(3).breaks(K5);
    }

    #[test]
    fn a_watch_that_stays_on_a_deleted_node_is_caught() {
        let mut history = HistoryBuilder::new();
        let attempt = history.at(100).begin(0);
        history.create(attempt).at(110).grant(attempt).at(120).dropped(attempt).delete(attempt);
        let mut history = history.end(1_000);
        history.run.facts.end.sessions.insert(1, 1);
        history.breaks(K5);
    }

    #[test]
    fn watches_without_a_waiter_are_caught() {
        let mut history = HistoryBuilder::good();
        history.run.facts.end.watches = 1;
        history.breaks(K5);
    }

    #[test]
    fn nodes_left_by_closed_clients_are_caught() {
        let mut history = HistoryBuilder::new();
        let attempt = history.at(100).begin(0);
        history.create(attempt).at(110).record(0, EventKind::Closing).at(120).record(0, EventKind::Closed);
        history.end(30_000).breaks_also(K5);
        assert_eq!(history.sentences(K5).len(), 2);
        history.breaks_also(K7);
    }
}
