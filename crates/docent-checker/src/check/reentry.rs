use super::Found;
use crate::attempts::{Deed, Story};
use crate::event::Handle;
use crate::scene::{End, Scene};
use crate::violation::{Invariant, Violation};
use std::time::Duration;

/// **Reentrancy**: giving up one of several handles leaves the node, the last one gives it up, and a lost
/// hold is not entered again: not after it was known to be lost, and not in a later generation.
pub(super) fn check(scene: &Scene<'_>, found: &mut Found) {
    for story in scene.attempts.all().filter(|story| story.granted.is_some()) {
        let mut wrong = counted(story);
        wrong.extend(entered_anew(scene, story));
        wrong.extend(taken_by_an_inner_one(scene, story));
        found.extend(wrong.into_iter().map(|(at, what)| {
            Violation::new(Invariant::M10, at, what)
                .attempt(story.id())
                .client(story.client)
                .path(story.attempt.path.clone())
        }));
    }
}

fn counted(story: &Story<'_>) -> Vec<(Duration, String)> {
    let mut handles = 1_u32;
    let mut wrong = Vec::new();
    for act in &story.acts {
        match act.what {
            Deed::Reentered(Handle::Given) => handles += 1,
            Deed::InnerReleased if handles > 1 => handles -= 1,
            Deed::InnerReleased => {
                wrong.push((act.at, "an inner handle was given up and there was none:".to_owned()));
            }
            Deed::Releasing | Deed::Dropped if handles > 1 => {
                wrong.push((act.at, format!("it was given up with {handles} handles left:")));
            }
            _ => {}
        }
    }
    wrong
}

fn entered_anew(scene: &Scene<'_>, story: &Story<'_>) -> Option<(Duration, String)> {
    let over = scene.generation_end(story);
    let mut lost = false;
    for act in &story.acts {
        if act.what == Deed::Reentered(Handle::Given) {
            if lost {
                return Some((act.at, "entered again after it was known to be lost:".to_owned()));
            }
            if over.is_some_and(|over| over.index < act.index) {
                return Some((
                    act.at,
                    "entered again after the generation in which it was granted:".to_owned(),
                ));
            }
        }
        lost |= act.what.says() == Some(false);
    }
    None
}

fn taken_by_an_inner_one(scene: &Scene<'_>, story: &Story<'_>) -> Option<(Duration, String)> {
    let (_, node) = scene.node_of(story)?;
    let gone = node.gone.filter(|gone| scene.end_of(node, *gone) == End::Own)?;
    let at = gone.when.at + scene.tolerances().grain;
    let inner = story.acts.iter().any(|act| act.what == Deed::InnerReleased && act.at <= at);
    let leaving = scene.leaving(story.client);
    let over = [story.until(), leaving].into_iter().flatten().min().is_some_and(|over| over <= at);
    (inner && !over).then(|| (gone.when.at, "giving up an inner handle took the node:".to_owned()))
}

#[cfg(test)]
mod tests {
    use crate::event::{AttemptId, Handle, LinkState, What};
    use crate::journal::EndCause::Forced;
    use crate::sketch::Sketch;
    use crate::violation::Invariant::M10;

    fn held_twice() -> (Sketch, AttemptId) {
        let mut sketch = Sketch::new();
        let attempt = sketch.at(100).begin(0);
        sketch.create(attempt).at(110).grant(attempt).reentered(attempt, Handle::Given);
        (sketch, attempt)
    }

    #[test]
    fn the_last_handle_gives_up_the_node() {
        let (mut sketch, attempt) = held_twice();
        sketch.at(120).tell(0, What::InnerReleased(attempt)).at(130).releasing(attempt).delete(attempt);
        sketch.released(attempt, true).end(1_000).holds();
    }

    #[test]
    fn an_inner_handle_does_not() {
        let (mut sketch, attempt) = held_twice();
        sketch.at(120).tell(0, What::InnerReleased(attempt)).at(125).delete(attempt);
        sketch.at(130).dropped(attempt).end(1_000).breaks(M10);
    }

    #[test]
    fn handles_are_counted() {
        let (mut sketch, attempt) = held_twice();
        sketch.clone().at(120).dropped(attempt).delete(attempt).end(1_000).breaks(M10);
        sketch.at(120).tell(0, What::InnerReleased(attempt)).tell(0, What::InnerReleased(attempt));
        sketch.at(130).dropped(attempt).delete(attempt).end(1_000).breaks(M10);
    }

    #[test]
    fn what_is_lost_is_not_entered_again() {
        let (mut sketch, attempt) = held_twice();
        sketch.at(200).end_session(1, Forced).at(202).lost(attempt);
        sketch.clone().reentered(attempt, Handle::Lost).link(0, LinkState::Lost).end(300).holds();
        sketch.reentered(attempt, Handle::Given).link(0, LinkState::Lost).end(300).breaks_also(M10);
    }

    #[test]
    fn a_hold_belongs_to_its_generation() {
        let (mut sketch, attempt) = held_twice();
        sketch.at(200).end_session(1, Forced).at(202).link(0, LinkState::Lost).connect(0, 9, 2);
        sketch.at(210).reentered(attempt, Handle::Given).lost(attempt).end(300).breaks_also(M10);
    }
}
