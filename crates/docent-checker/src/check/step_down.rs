use super::Found;
use crate::event::{AttemptId, What};
use crate::scene::Scene;
use crate::truth::NodeLife;
use crate::violation::{Invariant, Violation};
use std::time::Duration;

/// **A writer that steps down keeps its place**: its reader's node has the number of its own, and is made
/// while that is there. So no other writer comes between.
pub(super) fn check(scene: &Scene<'_>, found: &mut Found) {
    for (_, event) in scene.events() {
        if let What::SteppedDown { from, to } = &event.what {
            found.extend(wrong(scene, *from, *to, event.at));
        }
    }
}

fn wrong(scene: &Scene<'_>, from: AttemptId, to: AttemptId, at: Duration) -> Option<Violation> {
    let stories = scene.attempts.get(from).zip(scene.attempts.get(to));
    let nodes = stories.and_then(|(from, to)| Some((scene.node_of(from)?.1, scene.node_of(to)?.1)));
    let what = match nodes {
        Some((writer, reader)) => left(writer, reader)?,
        None => "a writer stepped down without a node:".to_owned(),
    };
    let violation = Violation::new(Invariant::R4, at, what).attempt(from).attempt(to);
    Some(match stories {
        Some((from, _)) => violation.client(from.client).path(from.attempt.path.clone()),
        None => violation,
    })
}

/// Violation in the way that the place was left.
fn left(writer: &NodeLife, reader: &NodeLife) -> Option<String> {
    let number = |node: &NodeLife| node.contender.as_ref().map(|contender| contender.number);
    if number(writer) != number(reader) {
        return Some(format!(
            "a writer with the number {:?} stepped down to {:?}:",
            number(writer),
            number(reader)
        ));
    }
    writer
        .gone
        .is_some_and(|gone| gone.when.zxid < reader.created.zxid)
        .then(|| "a writer's place was empty while it stepped down:".to_owned())
}

#[cfg(test)]
mod tests {
    use crate::event::{AttemptId, What};
    use crate::sketch::Sketch;
    use crate::violation::Invariant::R4;

    fn writing() -> (Sketch, AttemptId) {
        let mut sketch = Sketch::new();
        let writer = sketch.at(100).write(0);
        sketch.create(writer).at(110).grant(writer).at(200).releasing(writer);
        (sketch, writer)
    }

    fn end(sketch: &mut Sketch, writer: AttemptId, reader: AttemptId) -> Sketch {
        let fence = sketch.fence(writer);
        sketch.at(205).grant_with(reader, fence).tell(0, What::SteppedDown { from: writer, to: reader });
        sketch.at(206).end(1_000)
    }

    #[test]
    fn a_reader_in_the_writers_place_is_right() {
        let (mut sketch, writer) = writing();
        let reader = sketch.read(0);
        sketch.at(203).create_in_place_of(writer, reader).at(204).delete(writer);
        end(&mut sketch, writer, reader).holds();
    }

    #[test]
    fn who_leaves_first_is_caught() {
        let (mut sketch, writer) = writing();
        let reader = sketch.read(0);
        sketch.at(203).delete(writer).at(204).create_in_place_of(writer, reader);
        end(&mut sketch, writer, reader).breaks(R4);
    }

    #[test]
    fn who_takes_another_place_is_caught() {
        let (mut sketch, writer) = writing();
        let reader = sketch.read(0);
        sketch.at(203).create(reader).at(204).delete(writer);
        end(&mut sketch, writer, reader).breaks(R4);
    }
}
