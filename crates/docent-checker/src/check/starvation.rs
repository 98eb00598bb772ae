use super::Found;
use super::writer::{Passed, has_it, passed, violation};
use crate::scene::Scene;
use crate::violation::Invariant;

/// **Writers are not starved**: a reader whose place is behind that of a waiting writer is not granted before
/// that writer's place is gone.
pub(super) fn check(scene: &Scene<'_>, found: &mut Found) {
    for Passed { story, writer } in passed(scene) {
        let Some((at, _)) = story.granted else { continue };
        let holds = |id: &_| scene.attempts.get(*id).is_some_and(|other| has_it(other, at));
        if !scene.holders(writer).iter().any(holds) {
            let what = "a reader was granted before a writer that waits ahead of it:";
            found.push(violation(Invariant::R3, scene, &Passed { story, writer }, what));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::event::{AttemptId, Ending};
    use crate::sketch::Sketch;
    use crate::violation::Invariant::R3;

    /// One reads, one waits to write, another one wants to read.
    fn waiting() -> (Sketch, [AttemptId; 3]) {
        let mut sketch = Sketch::new();
        let all = [sketch.at(100).read(0), sketch.write(1), sketch.read(2)];
        for attempt in all {
            sketch.create(attempt);
        }
        sketch.at(110).grant(all[0]);
        (sketch, all)
    }

    #[test]
    fn a_reader_that_passes_a_writer_is_caught() {
        let (mut sketch, [_, _, late]) = waiting();
        sketch.at(120).grant(late).end(300).breaks(R3);
    }

    #[test]
    fn a_writer_that_left_is_in_nobodys_way() {
        let (mut sketch, [_, writer, late]) = waiting();
        sketch.at(200).ended(writer, Ending::Cancelled).delete(writer).at(203).grant(late).end(300).holds();
    }
}
