use super::Found;
use crate::attempts::Story;
use crate::event::{FaultKind, What};
use crate::scene::{End, Scene};
use crate::violation::{Invariant, Violation};
use std::time::Duration;

/// **Stability**: a term ends by the will of its leader or by a fault. Without faults no leader changes that
/// does not want to.
///
/// - Work that is bound to a term is dropped only when the term is lost, or when the candidate was stopped.
/// - The session of a leader that was connected and well for a whole timeout does not run out.
/// - Its node is not taken away by anybody but the faults of the run.
///
/// That no term is lost while its node is there and all is well is for M11.
pub(super) fn check(scene: &Scene<'_>, found: &mut Found) {
    for story in scene.attempts.all().filter(|story| scene.elections.standing(story.id()).is_some()) {
        let wrong = [dropped(scene, story), taken(scene, story)];
        found.extend(wrong.into_iter().flatten().map(|(at, what)| {
            Violation::new(Invariant::E8, at, what)
                .attempt(story.id())
                .client(story.client)
                .path(story.attempt.path.clone())
        }));
    }
}

fn dropped(scene: &Scene<'_>, story: &Story<'_>) -> Option<(Duration, &'static str)> {
    let standing = scene.elections.standing(story.id()).filter(|standing| standing.bound.is_some())?;
    let at = story.dropped?;
    let stopping = scene.elections.candidates().get(&standing.candidate)?.stopping;
    let reasons = [story.known_lost(), stopping, scene.leaving(story.client)];
    let reason = reasons.into_iter().flatten().any(|reason| reason <= at);
    (!reason).then_some((at, "its work was dropped without a reason:"))
}

fn taken(scene: &Scene<'_>, story: &Story<'_>) -> Option<(Duration, &'static str)> {
    story.granted?;
    let (_, node) = scene.node_of(story)?;
    let gone = node.gone.filter(|gone| story.given_up().is_none_or(|over| over > gone.when.at))?;
    let at = gone.when.at;
    let life = scene.life(story.client)?;
    match scene.end_of(node, gone) {
        End::Own => None,
        End::Expired => {
            let well = life.apart.spare(at.saturating_sub(scene.facts().timeout), at);
            well.then_some((at, "its session ran out while all was well:"))
        }
        End::Others => {
            let harm = scene.events().any(|(_, event)| {
                event.at <= at + scene.tolerances().grain
                    && event.client.is_some_and(|client| client.number == story.client.number)
                    && matches!(event.what, What::Fault(FaultKind::Deleted | FaultKind::Expired))
            });
            (!harm).then_some((at, "its node was taken away by nobody who is to do harm:"))
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::event::{AttemptId, FaultKind, LinkState, What};
    use crate::journal::EndCause::{Expired, Forced};
    use crate::sketch::{Sketch, candidate};
    use crate::violation::Invariant::{E7, E8, M3, M11};
    use crate::{Candidacy, Invariant};

    fn leading() -> (Sketch, AttemptId) {
        let mut sketch = Sketch::new();
        let term = sketch.at(100).run_at(0, 7);
        sketch.create(term).at(110).grant(term);
        (sketch, term)
    }

    fn broken(sketch: &mut Sketch) -> Vec<Invariant> {
        let mut broken = sketch.end(9_000).broken();
        broken.retain(|invariant| ![M3, M11, E7].contains(invariant));
        broken
    }

    #[test]
    fn a_leader_that_wants_to_leads_on() {
        leading().0.end(60_000).holds();
    }

    #[test]
    fn who_stops_ends_its_term() {
        let (mut sketch, term) = leading();
        sketch.at(200).tell(0, What::Stood(candidate(7), Candidacy::Stopping)).dropped(term).delete(term);
        sketch.end(9_000).holds();
    }

    #[test]
    fn work_that_is_dropped_for_nothing_is_caught() {
        let (mut sketch, term) = leading();
        assert_eq!(broken(sketch.at(200).dropped(term).delete(term)), [E8]);
    }

    #[test]
    fn a_session_that_runs_out_for_nothing_is_caught() {
        let (mut sketch, term) = leading();
        sketch.at(7_000).end_session(1, Expired).at(7_001).lost(term).dropped(term);
        assert_eq!(broken(&mut sketch), [E8]);
        let (mut sketch, term) = leading();
        sketch.at(300).fault(0, FaultKind::Cut).at(4_100).lost(term).at(7_000).end_session(1, Expired);
        sketch.dropped(term);
        assert_eq!(broken(&mut sketch), []);
    }

    #[test]
    fn who_takes_it_away_has_to_be_known() {
        for known in [true, false] {
            let (mut sketch, term) = leading();
            sketch.at(300);
            if known {
                sketch.fault(0, FaultKind::Expired);
            }
            sketch.end_session(1, Forced).at(310).lost(term).dropped(term).link(0, LinkState::Lost);
            assert_eq!(broken(&mut sketch), if known { vec![] } else { vec![E8] });
        }
    }
}
