use super::Found;
use crate::event::{ClientId, What};
use crate::scene::Scene;
use crate::timeline::Timeline;
use crate::violation::{Invariant, Violation};
use std::time::Duration;

/// **Close**: when it returns the client's sessions are gone from the server, with their nodes, and the
/// client asks for nothing any more.
///
/// When no server could be reached meanwhile, the sessions run out by themselves.
pub(super) fn check(scene: &Scene<'_>, found: &mut Found) {
    for (client, life) in &scene.clients {
        let Some(closed) = life.closed else { continue };
        for session in scene.sessions_of(*client) {
            found.extend(still_there(scene, *client, life, session, closed));
        }
    }
    for (_, event) in scene.events() {
        let Some(client) = event.client.filter(|_| matches!(event.what, What::Asked { .. })) else {
            continue;
        };
        let closed = scene.life(client).and_then(|life| life.closed);
        if closed.is_some_and(|closed| closed + scene.tolerances().grain < event.at) {
            let what = format!("asks after it was closed: {:?}", event.what);
            found.push(Violation::new(Invariant::K7, event.at, what).client(client));
        }
    }
}

fn still_there(
    scene: &Scene<'_>,
    client: ClientId,
    life: &Timeline,
    session: i64,
    closed: Duration,
) -> Option<Violation> {
    let tolerances = scene.tolerances();
    let closing = life.closing.unwrap_or(closed);
    let current = life.links.iter().rev().find_map(|link| link.session) == Some(session);
    // A session that was given up before is ended aside, or runs out.
    let reached = current
        && life.rough.spare(closing.saturating_sub(tolerances.reconnect), closed)
        && was_connected(life, closing);
    let due = match reached {
        true => closed + tolerances.grain,
        false => scene.away.quiet(closed, scene.facts().expiry() + tolerances.reconnect)?,
    };
    let ended = scene.truth.sessions().get(&session)?.ended.map(|(ended, _)| ended.at);
    let left = ended.map_or_else(|| scene.shows(due), |ended| ended > due);
    left.then(|| {
        let what = format!("closed at {closed:?}, and its session {session:#x} is there at {due:?}:");
        let violation = Violation::new(Invariant::K7, due, what).client(client);
        let nodes = scene.truth.nodes().iter().filter(|node| node.owner == session && node.is_alive_at(due));
        nodes.fold(violation, |violation, node| violation.path(&node.path))
    })
}

/// True when the last it told before a time was that it is connected.
fn was_connected(life: &Timeline, at: Duration) -> bool {
    use crate::event::LinkState;
    let before = life.links.iter().take_while(|link| link.at < at).last();
    before.is_some_and(|link| link.state == LinkState::Connected)
}

#[cfg(test)]
mod tests {
    use crate::event::{FaultKind, LinkState, What};
    use crate::journal::EndCause::Expired;
    use crate::sketch::Sketch;
    use crate::violation::Invariant::K7;

    #[test]
    fn close_ends_the_session_before_it_returns() {
        let mut sketch = Sketch::new();
        sketch.at(3_000).tell(0, What::Closing).at(3_100).link(0, LinkState::Closed).tell(0, What::Closed);
        sketch.clone().end(3_101).holds();
        sketch.clone().end(4_000).breaks(K7);
        sketch.at(3_200).end_session(1, Expired).end(4_000).breaks(K7);
    }

    #[test]
    fn without_a_server_the_session_runs_out() {
        let cut = |ended: bool| {
            let mut sketch = Sketch::new();
            sketch.at(3_000).fault(0, FaultKind::Cut).tell(0, What::Closing).at(5_000).tell(0, What::Closed);
            if ended {
                sketch.at(9_500).end_session(1, Expired);
            }
            sketch.end(15_000)
        };
        cut(true).holds();
        cut(false).breaks_also(K7);
    }

    #[test]
    fn who_is_closed_asks_for_nothing() {
        let mut sketch = Sketch::good();
        sketch.at(500).tell(0, What::Asked { op: 11, path: None }).end(1_000).breaks(K7);
    }
}
