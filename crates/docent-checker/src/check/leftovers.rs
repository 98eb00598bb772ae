use crate::analysis::Analysis;
use crate::attempt_trace::AttemptTrace;
use crate::event::ClientId;
use crate::violation::{Found, Invariant, Violation};
use std::collections::{BTreeMap, BTreeSet};

/// **Nothing is left over**: at the end a session has no more watches than its attempts need (two to wait,
/// one to hold) and clients that closed have neither session nor node.
///
/// Assumed: the end state was looked at when nothing was under way, and before the clients closed where their
/// watches shall be seen: a session that ends takes its watches along. Clients that watch anything besides
/// lines cannot be judged so.
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
            let what = format!("session {session:#x} has {watches} watches at the end and needs {most}:");
            let violation = Violation::new(Invariant::K5, end.at, what);
            found.push(client.into_iter().fold(violation, Violation::client));
        }
    }
    let all: usize = needed.values().sum();
    if end.watches > all {
        let what = format!("there are {} watches at the end, and {all} are needed:", end.watches);
        found.push(Violation::new(Invariant::K5, end.at, what));
    }
    closed_clients(analysis, found);
}

/// Number of watches that an attempt under way needs: two to wait, on the contender ahead and its own node;
/// one to hold, on its own node.
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
        // By then it is over by itself, even if the close failed.
        let over =
            analysis.life(client)?.closed? + analysis.facts().expiry() + analysis.tolerances().reconnect;
        analysis
            .away
            .quiet(over, analysis.facts().expiry())
            .is_some_and(|over| over <= end.at)
            .then_some(client)
    };
    for session in end.sessions.keys() {
        if let Some(client) = closed(session) {
            let what = format!("session {session:#x} of a closed client is left at the end:");
            found.push(Violation::new(Invariant::K5, end.at, what).client(client));
        }
    }
    for node in
        analysis.replay.nodes().iter().filter(|node| node.owner != 0 && nodes.contains(node.path.as_str()))
    {
        if let Some(client) = closed(&node.owner) {
            let what = "a node of a closed client is left at the end:";
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
    fn who_waits_has_two_watches() {
        with_watches(2).holds();
        with_watches(3).breaks(K5);
    }

    #[test]
    fn a_watch_on_a_node_that_was_gone_stays_and_is_caught() {
        let mut history = HistoryBuilder::new();
        let attempt = history.at(100).begin(0);
        history.create(attempt).at(110).grant(attempt).at(120).dropped(attempt).delete(attempt);
        let mut history = history.end(1_000);
        history.run.facts.end.sessions.insert(1, 1);
        history.breaks(K5);
    }

    #[test]
    fn watches_of_nobody_are_caught() {
        let mut history = HistoryBuilder::good();
        history.run.facts.end.watches = 1;
        history.breaks(K5);
    }

    #[test]
    fn what_closed_clients_leave_is_caught() {
        let mut history = HistoryBuilder::new();
        let attempt = history.at(100).begin(0);
        history.create(attempt).at(110).tell(0, EventKind::Closing).at(120).tell(0, EventKind::Closed);
        history.end(30_000).breaks_also(K5);
        assert_eq!(history.sentences(K5).len(), 2);
        history.breaks_also(K7);
    }
}
