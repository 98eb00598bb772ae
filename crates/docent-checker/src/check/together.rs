use super::Found;
use crate::attempts::Story;
use crate::event::Role;
use crate::scene::Scene;
use crate::truth::Moment;
use crate::violation::{Invariant, Violation};

/// **Things that go together** are held as a whole or not at all: there is a transaction at which all of
/// their nodes were there, each in its turn. The turn of a semaphore goes before, and is not looked at.
///
/// Nodes that an acquire took before it failed are a matter of orphans (M6), and its waits for others while
/// it has them of liveness (M8).
pub(super) fn check(scene: &Scene<'_>, found: &mut Found) {
    for group in scene.attempts.groups() {
        let stories = group.iter().filter_map(|id| scene.attempts.get(*id));
        let stories: Vec<&Story<'_>> = stories.filter(|story| story.attempt.role != Role::Turn).collect();
        let Some((at, _)) = stories.iter().find_map(|story| story.granted) else { continue };
        let Some(what) = wrong(scene, &stories) else { continue };
        let violation = Violation::new(Invariant::G1, at, what);
        found.push(stories.into_iter().fold(violation, |violation, story| {
            violation.attempt(story.id()).client(story.client).path(story.attempt.path.clone())
        }));
    }
}

fn wrong(scene: &Scene<'_>, stories: &[&Story<'_>]) -> Option<String> {
    let (mut last_came, mut first_went): (Option<Moment>, Option<Moment>) = (None, None);
    for story in stories {
        if story.granted.is_none() {
            return Some("a part of what goes together was granted:".to_owned());
        }
        // That there is no such node, or that it never came to its turn, is for others to say.
        let (index, node) = scene.node_of(story)?;
        let came = match story.attempt.role {
            Role::Exclusive => node.first?,
            Role::Shared => scene.sides.place(index)?.admitted?,
            _ => node.created,
        };
        last_came = last_came.max(Some(came));
        first_went = [first_went, node.gone.map(|gone| gone.when)].into_iter().flatten().min();
    }
    let never = first_went.zip(last_came).is_some_and(|(went, came)| went.zxid <= came.zxid);
    never.then(|| "granted together and never held at the same time:".to_owned())
}

#[cfg(test)]
mod tests {
    use crate::event::{AttemptId, What};
    use crate::sketch::Sketch;
    use crate::violation::Invariant::G1;

    fn both() -> (Sketch, [AttemptId; 2]) {
        let mut sketch = Sketch::new();
        let both = ["/one", "/two"].map(|path| sketch.at(2_100).begin_at(0, path));
        sketch.tell(0, What::Together(both.to_vec())).create(both[0]);
        (sketch, both)
    }

    #[test]
    fn all_of_them_at_once() {
        let (mut sketch, both) = both();
        sketch.at(2_200).create(both[1]).at(2_210).grant(both[0]).grant(both[1]);
        sketch.at(2_300).dropped(both[0]).dropped(both[1]).delete(both[0]).delete(both[1]).end(4_000).holds();
    }

    #[test]
    fn a_part_of_them_is_caught() {
        let (mut sketch, both) = both();
        sketch.at(2_210).grant(both[0]).end(2_300).breaks(G1);
    }

    #[test]
    fn one_that_was_lost_before_the_other_came_is_caught() {
        let (mut sketch, both) = both();
        let node = sketch.node(both[0]);
        sketch.at(2_150).delete_path(&node, 9).at(2_200).create(both[1]);
        sketch.at(2_210).grant(both[0]).grant(both[1]).lost(both[0]).lost(both[1]).end(2_300).breaks(G1);
    }

    #[test]
    fn who_waits_for_one_of_them_does_not_starve_for_the_other() {
        let (mut sketch, both) = both();
        let other = sketch.begin_at(1, "/two");
        sketch.create(other).at(2_110).grant(other).at(2_200).world(What::Calm).create(both[1]);
        sketch.at(30_000).dropped(other).delete(other).at(30_010).grant(both[0]).grant(both[1]);
        sketch.end(31_000).holds();
    }

    #[test]
    fn all_are_lost_with_one() {
        let (mut sketch, both) = both();
        sketch.at(2_200).create(both[1]).at(12_210).grant(both[0]).grant(both[1]);
        let node = sketch.node(both[0]);
        sketch.at(20_000).delete_path(&node, 9).at(20_002).lost(both[0]).lost(both[1]);
        sketch.at(20_100).dropped(both[0]).dropped(both[1]).delete(both[1]).end(30_000).holds();
    }
}
