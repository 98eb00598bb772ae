use super::Found;
use crate::attempts::{Deed, Story};
use crate::event::{AttemptId, Use};
use crate::scene::Scene;
use crate::violation::{Invariant, Violation};
use std::collections::HashMap;

/// **Fenced exclusion**: among the uses that a fenced resource accepts, fences never decrease, and one fence
/// belongs to one acquisition.
///
/// Assumed: one resource for each path, which all guards of the path use. Holds whatever is paused, cut off
/// or late.
pub(super) fn check(scene: &Scene<'_>, found: &mut Found) {
    let mut uses: Vec<(usize, &Story<'_>, Use)> = Vec::new();
    let mut owners: HashMap<(&str, u64), AttemptId> = HashMap::new();
    for story in scene.attempts.all() {
        let Some((at, grant)) = story.granted else { continue };
        let used = story.acts.iter().filter_map(|act| match act.what {
            Deed::Used(used) => Some((act.index, story, used)),
            _ => None,
        });
        uses.extend(used);
        let Some(fence) = grant.fence.filter(|_| story.is_exclusive()) else { continue };
        if let Some(other) = owners.insert((&story.attempt.path, fence), story.id()) {
            let what = format!("two acquisitions have the fence {fence}:");
            found.push(violation(story, at, what).attempt(other));
        }
    }
    uses.sort_by_key(|(index, ..)| *index);
    let mut highest: HashMap<&str, (u64, AttemptId)> = HashMap::new();
    for (index, story, used) in uses {
        let at = scene.run.events[index].at;
        let fence = story.granted.and_then(|(_, grant)| grant.fence);
        if fence != Some(used.fence) {
            let what = format!("used with the fence {}, granted with {fence:?}:", used.fence);
            found.push(violation(story, at, what));
        }
        let (top, by) = *highest.entry(&story.attempt.path).or_insert((used.fence, story.id()));
        match (used.accepted, used.fence < top) {
            (true, true) => {
                let what = format!("the fence {} was accepted after {top}:", used.fence);
                found.push(violation(story, at, what).attempt(by));
            }
            (false, false) => {
                let what =
                    format!("the fence {} was refused after {top}: not a fenced resource:", used.fence);
                found.push(violation(story, at, what).attempt(by));
            }
            _ => {}
        }
        if used.fence > top {
            highest.insert(&story.attempt.path, (used.fence, story.id()));
        }
    }
}

fn violation(story: &Story<'_>, at: std::time::Duration, what: String) -> Violation {
    Violation::new(Invariant::M1, at, what)
        .attempt(story.id())
        .client(story.client)
        .path(story.attempt.path.clone())
}

#[cfg(test)]
mod tests {
    use crate::event::{AttemptId, FaultKind};
    use crate::journal::EndCause::Expired;
    use crate::sketch::Sketch;
    use crate::violation::Invariant::{M1, M4};

    /// A holder that was frozen wakes up and uses what the next one holds.
    fn frozen() -> (Sketch, AttemptId, AttemptId) {
        let mut sketch = Sketch::new();
        let first = sketch.at(100).begin(0);
        sketch.create(first).at(110).grant(first).used(first);
        let second = sketch.at(120).begin(1);
        sketch.create(second).at(200).fault(0, FaultKind::Frozen).at(6_500).end_session(1, Expired);
        sketch.at(6_510).grant(second).used(second).at(9_000).heal(0, FaultKind::Frozen);
        (sketch, first, second)
    }

    fn end(sketch: &mut Sketch, first: AttemptId) -> Sketch {
        sketch.lost(first).at(9_001).dropped(first).end(9_010)
    }

    #[test]
    fn a_late_use_that_is_refused_is_right() {
        let (mut sketch, first, _) = frozen();
        let fence = 5;
        sketch.used_with(first, fence, false);
        end(&mut sketch, first).holds();
    }

    #[test]
    fn a_late_use_that_is_accepted_is_caught() {
        let (mut sketch, first, _) = frozen();
        sketch.used_with(first, 5, true);
        end(&mut sketch, first).breaks(M1);
    }

    #[test]
    fn a_refusal_without_a_higher_fence_is_caught() {
        let (mut sketch, first, second) = frozen();
        sketch.used_with(second, 6, false);
        end(&mut sketch, first).breaks(M1);
    }

    #[test]
    fn a_fence_of_ones_own_making_is_caught() {
        let (mut sketch, first, second) = frozen();
        sketch.used_with(second, 7, true);
        end(&mut sketch, first).breaks(M1);
    }

    #[test]
    fn numbers_as_fences_repeat_when_the_line_is_made_anew() {
        let mut sketch = Sketch::new();
        for (at, number) in [(100, 0), (200, 1)] {
            let attempt = sketch.at(at).reset().begin(number);
            sketch.create(attempt).at(at + 10).grant_with(attempt, 0).used_with(attempt, 0, true);
            sketch.at(at + 20).dropped(attempt).delete(attempt);
        }
        assert_eq!(sketch.end(1_000).broken(), [M1, M4]);
    }
}
