use super::Found;
use crate::attempts::Story;
use crate::scene::{End, Scene};
use crate::truth::Remover;
use crate::violation::{Invariant, Violation};
use std::time::Duration;

/// **A leader whose node is deleted** by somebody else knows within the time of news that its term is lost,
/// and its candidate stands again at once, unless that was stopped.
///
/// That it is in the line again is for E6. Asked of candidates that stand again by themselves.
pub(super) fn check(scene: &Scene<'_>, found: &mut Found) {
    for candidate in scene.elections.candidates().values() {
        for (place, id) in candidate.attempts.iter().enumerate() {
            let Some(story) = scene.attempts.get(*id) else { continue };
            let bound = scene.elections.standing(*id).is_some_and(|standing| standing.bound.is_some());
            let Some(due) = due(scene, story).filter(|_| bound) else { continue };
            let leaving = [scene.leaving(story.client), candidate.stopping].into_iter().flatten().min();
            if !scene.shows(due) || leaving.is_some_and(|leaving| leaving <= due) {
                continue;
            }
            let again = candidate.attempts.get(place + 1).and_then(|next| scene.attempts.get(*next));
            let what = match (story.until().is_some_and(|until| until <= due), again) {
                (false, _) => "its node was deleted, which it does not know:",
                (true, Some(again)) if again.began <= due => continue,
                (true, _) => "its node was deleted, and it does not stand again:",
            };
            found.push(
                Violation::new(Invariant::E7, due, what)
                    .attempt(*id)
                    .client(story.client)
                    .path(story.attempt.path.clone()),
            );
        }
    }
}

/// Time by which it has to know, and to stand again, if somebody else deleted the node of its term.
fn due(scene: &Scene<'_>, story: &Story<'_>) -> Option<Duration> {
    let (granted, _) = story.granted?;
    let (_, node) = scene.node_of(story)?;
    let gone = node.gone.filter(|gone| matches!(gone.by, Remover::Session(_)))?;
    if scene.end_of(node, gone) != End::Others || story.given_up().is_some_and(|over| over <= gone.when.at) {
        return None;
    }
    Some(scene.notice(story.client, node)?.max(granted + scene.tolerances().news))
}

#[cfg(test)]
mod tests {
    use crate::event::{AttemptId, FaultKind, What};
    use crate::sketch::{Sketch, candidate};
    use crate::violation::Invariant::{E6, E7, M11};
    use crate::{Candidacy, Ending};

    fn deleted() -> (Sketch, AttemptId) {
        let mut sketch = Sketch::new();
        let term = sketch.at(100).run_at(0, 7);
        let node = sketch.create(term).node(term);
        sketch.at(110).grant(term).at(1_000).fault(0, FaultKind::Deleted).delete_path(&node, 7);
        (sketch, term)
    }

    #[test]
    fn it_knows_and_stands_again() {
        let (mut sketch, term) = deleted();
        sketch.at(1_150).lost(term).dropped(term);
        let again = sketch.run_at(0, 7);
        sketch.at(1_160).create(again).at(1_170).grant(again).end(9_000).holds();
    }

    #[test]
    fn who_does_not_know_is_caught() {
        let (mut sketch, term) = deleted();
        sketch.at(2_000).lost(term).dropped(term);
        let again = sketch.run_at(0, 7);
        sketch.at(2_010).create(again).at(2_020).grant(again);
        assert_eq!(sketch.end(9_000).broken(), [M11, E7]);
    }

    #[test]
    fn who_does_not_stand_again_is_caught() {
        let (mut sketch, term) = deleted();
        sketch.at(1_150).lost(term).dropped(term).end(9_000).breaks(E7);
    }

    #[test]
    fn who_stops_need_not_stand_again() {
        let (mut sketch, term) = deleted();
        sketch.at(1_100).tell(0, What::Stood(candidate(7), Candidacy::Stopping));
        sketch.lost(term).dropped(term).end(9_000).holds();
        let (mut sketch, term) = deleted();
        sketch.at(1_100).lost(term).dropped(term);
        let again = sketch.run_at(0, 7);
        sketch.at(1_110).ended(again, Ending::Cancelled).end(9_000);
        assert!(!sketch.broken().contains(&E6));
    }
}
