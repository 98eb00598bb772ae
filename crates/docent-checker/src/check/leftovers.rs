use super::Found;
use crate::attempts::Story;
use crate::event::ClientId;
use crate::scene::Scene;
use crate::violation::{Invariant, Violation};
use std::collections::{BTreeMap, BTreeSet};

/// **Nothing is left over**: at the end a session has no more watches than its attempts need (two to wait,
/// one to hold) and clients that closed have neither session nor node.
///
/// Assumed: the end state was looked at when nothing was under way, and before the clients closed where their
/// watches shall be seen: a session that ends takes its watches along. Clients that watch anything besides
/// lines cannot be judged so.
pub(super) fn check(scene: &Scene<'_>, found: &mut Found) {
    let end = &scene.facts().end;
    let mut needed: BTreeMap<ClientId, usize> = BTreeMap::new();
    for story in scene.attempts.all() {
        *needed.entry(story.client).or_default() += watches(story);
    }
    for (session, watches) in &end.sessions {
        let client = scene.client_of(*session);
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
    closed_clients(scene, found);
}

/// Number of watches that an attempt under way needs: two to wait, on the contender ahead and its own node;
/// one to hold, on its own node.
fn watches(story: &Story<'_>) -> usize {
    match (story.waited_until(), story.granted) {
        (None, _) => 2,
        (Some(_), Some(_)) if story.given_up().is_none() => 1,
        _ => 0,
    }
}

fn closed_clients(scene: &Scene<'_>, found: &mut Found) {
    let end = &scene.facts().end;
    let nodes: BTreeSet<&str> = end.nodes.iter().map(String::as_str).collect();
    let closed = |session: &i64| {
        let client = scene.client_of(*session)?;
        // By then it is over by itself, even if the close failed.
        let over = scene.life(client)?.closed? + scene.facts().expiry() + scene.tolerances().reconnect;
        scene.away.quiet(over, scene.facts().expiry()).is_some_and(|over| over <= end.at).then_some(client)
    };
    for session in end.sessions.keys() {
        if let Some(client) = closed(session) {
            let what = format!("session {session:#x} of a closed client is left at the end:");
            found.push(Violation::new(Invariant::K5, end.at, what).client(client));
        }
    }
    for node in
        scene.truth.nodes().iter().filter(|node| node.owner != 0 && nodes.contains(node.path.as_str()))
    {
        if let Some(client) = closed(&node.owner) {
            let what = "a node of a closed client is left at the end:";
            found.push(Violation::new(Invariant::K5, end.at, what).client(client).path(&node.path));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::event::What;
    use crate::sketch::Sketch;
    use crate::violation::Invariant::{K5, K7};

    fn with_watches(watches: usize) -> Sketch {
        let mut sketch = Sketch::new();
        let (first, second) = (sketch.at(100).begin(0), sketch.begin(1));
        sketch.create(first).create(second).at(110).grant(first);
        let mut sketch = sketch.end(1_000);
        sketch.run.facts.end.sessions.insert(2, watches);
        sketch.run.facts.end.watches = watches + 1;
        sketch
    }

    #[test]
    fn who_waits_has_two_watches() {
        with_watches(2).holds();
        with_watches(3).breaks(K5);
    }

    #[test]
    fn a_watch_on_a_node_that_was_gone_stays_and_is_caught() {
        let mut sketch = Sketch::new();
        let attempt = sketch.at(100).begin(0);
        sketch.create(attempt).at(110).grant(attempt).at(120).dropped(attempt).delete(attempt);
        let mut sketch = sketch.end(1_000);
        sketch.run.facts.end.sessions.insert(1, 1);
        sketch.breaks(K5);
    }

    #[test]
    fn watches_of_nobody_are_caught() {
        let mut sketch = Sketch::good();
        sketch.run.facts.end.watches = 1;
        sketch.breaks(K5);
    }

    #[test]
    fn what_closed_clients_leave_is_caught() {
        let mut sketch = Sketch::new();
        let attempt = sketch.at(100).begin(0);
        sketch.create(attempt).at(110).tell(0, What::Closing).at(120).tell(0, What::Closed);
        sketch.end(30_000).breaks_also(K5);
        assert_eq!(sketch.sentences(K5).len(), 2);
        sketch.breaks_also(K7);
    }
}
