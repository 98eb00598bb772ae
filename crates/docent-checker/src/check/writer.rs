use super::Found;
use super::real_time::{judge, overlapping};
use crate::attempts::Story;
use crate::scene::Scene;
use crate::violation::{Invariant, Violation};

/// **A writer excludes readers**, in the order of transactions and in real time.
///
/// For each reader there is a transaction at which its node was there and no writer ahead of it was; a reader
/// that was granted while the one ahead held is caught here, and one that passed a writer that waited by R3.
/// In real time a writer and a reader may overlap as two writers may: see M3, which is also where two writers
/// are caught.
pub(super) fn check(scene: &Scene<'_>, found: &mut Found) {
    for Passed { story, writer } in passed(scene) {
        let Some((at, _)) = story.granted else { continue };
        let holds = |id: &&_| scene.attempts.get(**id).is_some_and(|other| has_it(other, at));
        if let Some(holder) = scene.holders(writer).iter().find(holds) {
            let what = "a reader was granted while the writer ahead of it held:";
            found.push(violation(Invariant::R1, scene, &Passed { story, writer }, what).attempt(*holder));
        }
    }
    let excluded = |one: &Story<'_>, other: &Story<'_>| {
        one.is_shared() && other.is_exclusive() || one.is_exclusive() && other.is_shared()
    };
    for overlap in overlapping(scene, excluded) {
        found.extend(judge(scene, Invariant::R1, &overlap));
    }
}

/// True when it was granted by then.
pub(super) fn has_it(story: &Story<'_>, at: std::time::Duration) -> bool {
    story.granted.is_some_and(|(granted, _)| granted <= at)
}

/// A reader that was granted while a writer ahead of it was in the line.
pub(super) struct Passed<'s, 'a> {
    pub(super) story: &'s Story<'a>,
    pub(super) writer: usize,
}

pub(super) fn passed<'s, 'a>(scene: &'s Scene<'a>) -> impl Iterator<Item = Passed<'s, 'a>> {
    scene.attempts.all().filter(|story| story.is_shared()).filter_map(|story| {
        let (at, _) = story.granted?;
        let at = at + scene.tolerances().grain;
        let (index, _) = scene.node_of(story)?;
        let place = scene.sides.place(index)?;
        if place.admitted.is_some_and(|admitted| admitted.at <= at) {
            return None;
        }
        let then = |writer: &&usize| scene.truth.nodes()[**writer].is_alive_at(at);
        let writer = place.blockers.iter().find(then).or(place.blockers.last())?;
        Some(Passed { story, writer: *writer })
    })
}

pub(super) fn violation(
    invariant: Invariant,
    scene: &Scene<'_>,
    passed: &Passed<'_, '_>,
    what: &str,
) -> Violation {
    let Passed { story, writer } = passed;
    let writer = &scene.truth.nodes()[*writer];
    let at = story.granted.map_or(story.began, |(at, _)| at);
    let violation = Violation::new(invariant, at, what)
        .attempt(story.id())
        .client(story.client)
        .path(story.attempt.path.clone())
        .path(writer.path.clone());
    scene.client_of(writer.owner).into_iter().fold(violation, Violation::client)
}

#[cfg(test)]
mod tests {
    use crate::event::{AttemptId, FaultKind};
    use crate::journal::EndCause::Expired;
    use crate::sketch::Sketch;
    use crate::violation::Invariant::R1;

    fn writer_ahead() -> (Sketch, AttemptId, AttemptId) {
        let mut sketch = Sketch::new();
        let (writer, reader) = (sketch.at(100).write(0), sketch.read(1));
        sketch.create(writer).create(reader).at(110).grant(writer);
        (sketch, writer, reader)
    }

    #[test]
    fn a_reader_comes_after_the_writer() {
        let (mut sketch, writer, reader) = writer_ahead();
        sketch.at(200).releasing(writer).at(202).delete(writer).at(203).grant(reader).end(1_000).holds();
    }

    #[test]
    fn a_reader_beside_a_writer_is_caught() {
        let (mut sketch, writer, reader) = writer_ahead();
        sketch.at(150).grant(reader).at(200).dropped(reader).delete(reader);
        sketch.at(210).dropped(writer).delete(writer).end(1_000).breaks(R1);
    }

    #[test]
    fn a_reader_that_goes_on_beside_a_writer_is_caught() {
        let mut sketch = Sketch::new();
        let (reader, writer) = (sketch.at(100).read(0), sketch.write(1));
        sketch.create(reader).create(writer).at(110).grant(reader);
        sketch
            .at(200)
            .delete(reader)
            .at(205)
            .grant(writer)
            .at(300)
            .dropped(reader)
            .end(1_000)
            .breaks_also(R1);
    }

    #[test]
    fn a_reader_that_stood_still_is_excused() {
        let mut sketch = Sketch::new();
        let (reader, writer) = (sketch.at(100).read(0), sketch.write(1));
        sketch.create(reader).create(writer).at(110).grant(reader).at(200).fault(0, FaultKind::Frozen);
        sketch.at(6_510).end_session(1, Expired).at(6_520).grant(writer);
        sketch.at(8_000).heal(0, FaultKind::Frozen).at(8_050).lost(reader).end(9_000).holds();
    }

    #[test]
    fn readers_are_beside_each_other() {
        let mut sketch = Sketch::new();
        let (one, other) = (sketch.at(100).read(0), sketch.read(1));
        sketch.create(one).create(other).at(110).grant(one).grant(other);
        sketch.at(200).dropped(one).dropped(other).delete(one).delete(other).end(1_000).holds();
    }
}
