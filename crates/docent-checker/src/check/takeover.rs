use super::Found;
use crate::attempts::Story;
use crate::run::Noted;
use crate::scene::Scene;
use crate::violation::{Invariant, Violation};
use std::time::Duration;

/// **Takeover delay**: a leader of an election that has one begins not before that is over, counted from the
/// time when it came first in the line, unless its predecessor resigned.
///
/// A leader that resigned took its term out of the election's node; the facts hold the content of that node
/// at each transaction.
pub(super) fn check(scene: &Scene<'_>, found: &mut Found) {
    for story in scene.attempts.all() {
        let standing = scene.elections.standing(story.id()).filter(|standing| !standing.delay.is_zero());
        let Some((early, delay)) = standing.and_then(|it| Some((early(scene, story, it.delay)?, it.delay)))
        else {
            continue;
        };
        let what = format!("it began {early:?} before the takeover delay of {delay:?} was over:");
        let at = story.granted.map_or(story.began, |(at, _)| at);
        found.push(
            Violation::new(Invariant::E9, at, what)
                .attempt(story.id())
                .client(story.client)
                .path(story.attempt.path.clone()),
        );
    }
}

/// Time by which a term began too early.
fn early(scene: &Scene<'_>, story: &Story<'_>, delay: Duration) -> Option<Duration> {
    let (at, _) = story.granted?;
    let (_, node) = scene.node_of(story)?;
    let first = node.first?;
    let by_then = |noted: &&Noted| noted.path == story.attempt.path && noted.zxid <= first.zxid;
    let before = scene.facts().noted.iter().rev().find(by_then)?;
    before.term?;
    (first.at + delay).checked_sub(at + scene.tolerances().grain).filter(|early| !early.is_zero())
}

#[cfg(test)]
mod tests {
    use crate::event::AttemptId;
    use crate::run::Noted;
    use crate::sketch::{LOCK, Sketch};
    use crate::violation::Invariant::E9;

    /// The first one's term is written down, and resigned from or not; the second one comes first at 1 s.
    fn handed_over(resigned: bool) -> (Sketch, AttemptId) {
        let mut sketch = Sketch::new();
        let (first, second) = (sketch.at(100).run_with(0, 7, 0, 2_000), sketch.run_with(1, 8, 0, 2_000));
        sketch.create(first).create(second).at(109).pass();
        let noted = |zxid, term| Noted { path: LOCK.to_owned(), zxid, term };
        sketch.run.facts.noted.push(noted(7, Some(5)));
        sketch.at(110).grant(first).at(1_000).releasing(first);
        if resigned {
            sketch.pass().run.facts.noted.push(noted(8, None));
        }
        sketch.delete(first);
        (sketch, second)
    }

    #[test]
    fn who_follows_one_that_resigned_begins_at_once() {
        let (mut sketch, second) = handed_over(true);
        sketch.at(1_010).grant(second).end(9_000).holds();
    }

    #[test]
    fn who_follows_another_waits() {
        let (mut sketch, second) = handed_over(false);
        sketch.clone().at(3_010).grant(second).end(9_000).holds();
        sketch.at(2_900).grant(second).end(9_000).breaks(E9);
    }
}
