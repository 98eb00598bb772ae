use super::Found;
use crate::attempts::Story;
use crate::event::ClientId;
use crate::scene::Scene;
use crate::truth::NodeLife;
use crate::violation::{Invariant, Violation};
use std::time::Duration;

/// **Succession**: the candidate that comes first in the line leads within the time of news, which is a
/// second, and the takeover delay of its election, if its client is connected and well.
///
/// It comes first when the leader's node is gone: at once when that resigns, and within a session timeout and
/// two ticks when that fails, of which M6 asks. That somebody leads after all faults is for M8. Where a
/// client has several nodes in the line, the attempt of each is not known before it leads: an unknown node
/// counts when the client needs all of them.
pub(super) fn check(scene: &Scene<'_>, found: &mut Found) {
    for (path, delay) in scene.elections.delays() {
        for (index, node) in scene.truth.contenders_in(path) {
            found.extend(late(scene, path, index, node, *delay));
        }
    }
}

fn late(scene: &Scene<'_>, path: &str, index: usize, node: &NodeLife, delay: Duration) -> Option<Violation> {
    let (first, client) = (node.first?.at, scene.client_of(node.owner)?);
    let tolerances = scene.tolerances();
    let due = first + tolerances.news + delay;
    let life = scene.life(client)?;
    let well = life.apart.spare(first.saturating_sub(tolerances.reconnect), due);
    if !well || !scene.shows(due) || life.leaving().is_some_and(|leaving| leaving <= due) {
        return None;
    }
    let holder = scene.holders(index).first().and_then(|id| scene.attempts.get(*id));
    let late = match holder.and_then(|story| story.granted) {
        Some((at, _)) => at > due,
        None => node.is_alive_at(due) && needs_all(scene, client, path, node, due),
    };
    let what = "it came first in the line and does not lead:";
    let violation = || Violation::new(Invariant::E5, due, what).client(client).path(path).path(&node.path);
    late.then(|| holder.into_iter().fold(violation(), |violation, story| violation.attempt(story.id())))
}

/// True when a client waits for at least as many terms as it has nodes in the line.
fn needs_all(scene: &Scene<'_>, client: ClientId, path: &str, node: &NodeLife, at: Duration) -> bool {
    let grain = scene.tolerances().grain;
    let waits = |story: &&Story<'_>| {
        story.began <= node.created.at + grain && story.waited_until().is_none_or(|over| over > at)
    };
    let nodes = scene.truth.contenders_in(path).filter(|(index, node)| {
        scene.client_of(node.owner) == Some(client)
            && node.is_alive_at(at)
            && scene.holders(*index).is_empty()
    });
    scene.attempts.at_seat(client, path).filter(waits).count() >= nodes.count()
}

#[cfg(test)]
mod tests {
    use crate::event::{AttemptId, Ending, FaultKind, LinkState};
    use crate::journal::EndCause::{Expired, Forced};
    use crate::sketch::Sketch;
    use crate::violation::Invariant::E5;

    /// The first one leads until 5 s; the second one waits.
    fn waiting(delay: u64) -> (Sketch, AttemptId, AttemptId) {
        let mut sketch = Sketch::new();
        let (first, second) = (sketch.at(100).run_with(0, 7, 0, delay), sketch.run_with(1, 8, 0, delay));
        sketch.create(first).create(second).at(110).grant(first);
        (sketch, first, second)
    }

    #[test]
    fn the_next_leads_soon_after_one_that_resigned() {
        let next = |at: u64| {
            let (mut sketch, first, second) = waiting(0);
            sketch.at(5_000).releasing(first).delete(first).at(at).grant(second);
            sketch.end(9_000)
        };
        next(5_190).holds();
        next(5_300).breaks(E5);
    }

    #[test]
    fn the_next_leads_soon_after_the_session_of_one_that_failed_is_over() {
        let (mut sketch, first, second) = waiting(0);
        sketch.at(200).fault(0, FaultKind::Cut).at(4_000).lost(first).dropped(first);
        sketch.at(6_600).end_session(1, Expired);
        sketch.clone().at(6_700).grant(second).end(9_000).holds();
        sketch.at(7_000).grant(second).end(9_000).breaks(E5);
    }

    #[test]
    fn a_takeover_delay_is_waited_for() {
        let (mut sketch, first, second) = waiting(2_000);
        sketch
            .at(5_000)
            .fault(0, FaultKind::Expired)
            .end_session(1, Forced)
            .at(5_010)
            .lost(first)
            .dropped(first)
            .link(0, LinkState::Lost);
        sketch.at(7_100).grant(second).end(9_000).holds();
    }

    #[test]
    fn who_never_leads_is_caught() {
        let (mut sketch, first, second) = waiting(0);
        sketch.at(5_000).releasing(first).delete(first);
        sketch.clone().end(5_100).holds();
        sketch.clone().at(5_150).ended(second, Ending::Cancelled).delete(second).end(9_000).holds();
        sketch.end(9_000).breaks(E5);
    }

    #[test]
    fn of_who_is_cut_off_nothing_is_asked() {
        let (mut sketch, first, _) = waiting(0);
        sketch.at(4_900).fault(1, FaultKind::Cut).at(5_000).releasing(first).delete(first).end(9_000).holds();
    }
}
