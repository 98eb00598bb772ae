use super::Found;
use crate::attempts::Story;
use crate::event::Ending;
use crate::scene::Scene;
use crate::timeline::Timeline;
use crate::violation::{Invariant, Violation};
use std::time::Duration;

/// **Patience**: an attempt waits for as long as it was told to and not longer. It times out not before its
/// deadline, and is over one round trip and 100 ms after it; only one that does not wait at all is told that
/// others hold.
///
/// While its process stands still nothing is over. An attempt that does not wait takes its round trips, and
/// is judged only when the link was well; it may take its operation's deadline at most. Nodes that it leaves
/// behind are a matter of orphans.
pub(super) fn check(scene: &Scene<'_>, found: &mut Found) {
    for story in scene.attempts.all() {
        let wrong = [too_early(scene, story), too_late(scene, story)];
        found.extend(wrong.into_iter().flatten().map(|(at, what)| {
            Violation::new(Invariant::M12, at, what)
                .attempt(story.id())
                .client(story.client)
                .path(story.attempt.path.clone())
        }));
    }
}

/// Requests of an attempt that does not wait, for each thing that it wants: look, parents, ticket, proof,
/// some of them twice.
const TRIPS: u32 = 10;
const SLACK: Duration = Duration::from_millis(100);

fn too_early(scene: &Scene<'_>, story: &Story<'_>) -> Option<(Duration, String)> {
    let (at, ending) = story.ended?;
    let what = match (ending, story.attempt.patience) {
        (Ending::Busy, patience) if patience != Some(Duration::ZERO) => {
            "told that others hold, and was to wait:".to_owned()
        }
        (Ending::TimedOut, None) => "timed out, and was to wait for as long as it takes:".to_owned(),
        (Ending::TimedOut, Some(patience)) if at + scene.tolerances().grain < story.began + patience => {
            format!("timed out {:?} before its deadline:", story.began + patience - at)
        }
        _ => return None,
    };
    Some((at, what))
}

fn too_late(scene: &Scene<'_>, story: &Story<'_>) -> Option<(Duration, String)> {
    let patience = story.attempt.patience?;
    let life = scene.life(story.client)?;
    let due = match patience {
        Duration::ZERO => due_at_once(scene, story, life)?,
        _ => story.began + patience + scene.tolerances().round_trip + SLACK,
    };
    let due = life.awake(due, SLACK);
    match story.waited_until() {
        Some(over) if over > due => Some((over, format!("over {:?} too late:", over - due))),
        Some(_) => None,
        None if scene.shows(due) && life.leaving().is_none() => {
            Some((due, "not over when it is due:".to_owned()))
        }
        None => None,
    }
}

fn due_at_once(scene: &Scene<'_>, story: &Story<'_>, life: &Timeline) -> Option<Duration> {
    let things = scene.attempts.together(story.id()).count().max(1);
    let trips = TRIPS * u32::try_from(things).unwrap_or(u32::MAX);
    let due = story.began + scene.tolerances().round_trip * trips + SLACK;
    let reconnect = scene.tolerances().reconnect;
    life.apart.spare(story.began.saturating_sub(reconnect), due).then_some(due)
}

#[cfg(test)]
mod tests {
    use crate::event::{AttemptId, Ending, FaultKind};
    use crate::sketch::Sketch;
    use crate::violation::Invariant::M12;

    /// An attempt that begins at 5 s, behind one that holds.
    fn waiting(patience: u64) -> (Sketch, AttemptId) {
        let mut sketch = Sketch::new();
        let first = sketch.at(100).begin(0);
        sketch.create(first).at(110).grant(first);
        let second = sketch.at(5_000).begin_for(1, patience);
        sketch.create(second);
        (sketch, second)
    }

    fn over(patience: u64, at: u64, ending: Ending) -> Sketch {
        let (mut sketch, second) = waiting(patience);
        sketch.at(at).ended(second, ending).delete(second);
        sketch.end(9_000)
    }

    #[test]
    fn it_times_out_at_its_deadline() {
        over(1_000, 6_000, Ending::TimedOut).holds();
        over(1_000, 6_110, Ending::TimedOut).holds();
        over(1_000, 5_900, Ending::TimedOut).breaks(M12);
        over(1_000, 6_200, Ending::TimedOut).breaks(M12);
    }

    #[test]
    fn only_who_does_not_wait_is_told_that_others_hold() {
        over(0, 5_050, Ending::Busy).holds();
        over(1_000, 5_050, Ending::Busy).breaks(M12);
    }

    #[test]
    fn who_does_not_wait_is_answered_soon() {
        over(0, 5_400, Ending::Busy).breaks(M12);
    }

    #[test]
    fn who_waits_for_as_long_as_it_takes_does_not_time_out() {
        let mut sketch = Sketch::new();
        let attempt = sketch.at(100).begin(0);
        sketch.create(attempt).at(3_000).ended(attempt, Ending::TimedOut).delete(attempt);
        sketch.end(4_000).breaks(M12);
    }

    #[test]
    fn a_grant_after_the_deadline_is_late() {
        let mut sketch = Sketch::new();
        let attempt = sketch.at(100).begin_for(0, 1_000);
        sketch.create(attempt).at(3_000).grant(attempt).end(4_000).breaks(M12);
    }

    #[test]
    fn what_never_ends_is_late() {
        let (sketch, _) = waiting(1_000);
        sketch.clone().end(6_050).holds();
        sketch.clone().end(9_000).breaks(M12);
    }

    #[test]
    fn who_stands_still_cannot_be_in_time() {
        let (mut sketch, second) = waiting(1_000);
        sketch.at(5_500).fault(1, FaultKind::Frozen).at(7_000).heal(1, FaultKind::Frozen);
        sketch.clone().at(7_050).ended(second, Ending::TimedOut).delete(second).end(9_000).holds();
        sketch.at(7_300).ended(second, Ending::TimedOut).delete(second).end(9_000).breaks(M12);
    }
}
