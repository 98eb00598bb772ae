use super::Found;
use crate::attempts::Story;
use crate::scene::Scene;
use crate::violation::{Invariant, Violation};

/// **Terms of one candidate follow each other**: gained and lost alternate. Its work in one term is over,
/// done or dropped, before it stands for the next one, and a term that was lost is told to be lost before the
/// next begins.
pub(super) fn check(scene: &Scene<'_>, found: &mut Found) {
    for candidate in scene.elections.candidates().values() {
        let stories = candidate.attempts.iter().filter_map(|id| scene.attempts.get(*id));
        let mut last: Option<&Story<'_>> = None;
        for story in stories {
            if let Some(wrong) = last.and_then(|last| wrong(last, story)) {
                let violation = Violation::new(Invariant::E3, story.began, wrong).client(story.client);
                let violation =
                    last.into_iter().fold(violation, |violation, last| violation.attempt(last.id()));
                found.push(violation.attempt(story.id()).path(story.attempt.path.clone()));
            }
            last = Some(story);
        }
    }
}

fn wrong(last: &Story<'_>, next: &Story<'_>) -> Option<&'static str> {
    let over = |over: Option<std::time::Duration>| over.is_some_and(|over| over <= next.began);
    match last.granted {
        None if !over(last.waited_until()) => Some("a candidate stands twice:"),
        Some(_) if !over(last.given_up()) => Some("a candidate stands again while its work goes on:"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::event::{AttemptId, Ending};
    use crate::sketch::Sketch;
    use crate::violation::Invariant::E3;

    fn led() -> (Sketch, AttemptId) {
        let mut sketch = Sketch::new();
        let first = sketch.at(100).run_at(0, 7);
        sketch.create(first).at(110).grant(first);
        (sketch, first)
    }

    #[test]
    fn one_term_after_the_other_is_right() {
        let (mut sketch, first) = led();
        sketch.at(200).releasing(first);
        let second = sketch.run_at(0, 7);
        sketch.at(202).delete(first).at(210).create(second).at(220).grant(second).at(300).releasing(second);
        sketch.delete(second).end(400).holds();
    }

    #[test]
    fn work_that_goes_on_into_the_next_term_is_caught() {
        let (mut sketch, first) = led();
        let second = sketch.at(200).run_at(0, 7);
        sketch.at(201).releasing(first).delete(first).at(210).create(second).at(220).grant(second);
        sketch.end(400).breaks(E3);
    }

    #[test]
    fn who_stands_twice_is_caught() {
        let (mut sketch, first) = led();
        sketch.at(120).releasing(first).delete(first);
        let (second, third) = (sketch.run_at(0, 7), sketch.run_at(0, 7));
        sketch.at(130).create(second).create(third).at(140).grant(second);
        sketch.at(150).ended(third, Ending::Cancelled).delete(third).end(400).breaks(E3);
    }

    #[test]
    fn candidates_of_one_client_do_not_wait_for_each_other() {
        let (mut sketch, first) = led();
        let other = sketch.at(120).run_at(0, 8);
        sketch.create(other).at(200).releasing(first).delete(first).at(210).grant(other).end(400).holds();
    }
}
