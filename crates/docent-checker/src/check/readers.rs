use super::Found;
use crate::attempts::Story;
use crate::contender::Contender;
use crate::event::Ending;
use crate::scene::Scene;
use crate::violation::{Invariant, Violation};
use std::time::Duration;

/// **Readers overlap**: a reader waits for writers only.
///
/// Once no writer is ahead of it, and while its link is well, it is granted as soon as news and two round
/// trips allow, however many others read. One that does not wait is told that others hold only if a writer
/// was in the line while it asked, or shortly before. Not looked at: readers that go together with other
/// things.
pub(super) fn check(scene: &Scene<'_>, found: &mut Found) {
    for story in scene.attempts.all().filter(|story| story.is_shared()) {
        if scene.attempts.is_grouped(story.id()) {
            continue;
        }
        found.extend([held_back(scene, story), refused(scene, story)].into_iter().flatten().map(
            |(at, what)| {
                Violation::new(Invariant::R2, at, what)
                    .attempt(story.id())
                    .client(story.client)
                    .path(story.attempt.path.clone())
            },
        ));
    }
}

fn held_back(scene: &Scene<'_>, story: &Story<'_>) -> Option<(Duration, String)> {
    let (at, _) = story.granted?;
    let (index, node) = scene.node_of(story)?;
    let admitted = scene.sides.place(index)?.admitted?;
    let tolerances = scene.tolerances();
    let from = admitted.at.max(node.created.at).max(story.began);
    let due = from + tolerances.news + tolerances.round_trip * 2 + tolerances.scheduling;
    let well = scene.life(story.client)?.apart.spare(from.saturating_sub(tolerances.reconnect), due);
    (at > due && well).then(|| (at, format!("a reader waited {:?} with no writer ahead of it:", at - from)))
}

fn refused(scene: &Scene<'_>, story: &Story<'_>) -> Option<(Duration, String)> {
    let (at, _) = story.ended.filter(|(_, ending)| **ending == Ending::Busy)?;
    let tolerances = scene.tolerances();
    let well = scene.life(story.client)?.apart.spare(story.began.saturating_sub(tolerances.reconnect), at);
    let since = story.began.saturating_sub(tolerances.news);
    let mut writers = scene.truth.contenders_in(&story.attempt.path).filter(|(_, node)| {
        node.contender.as_ref().is_some_and(Contender::is_writer)
            && node.created.at <= at + tolerances.grain
            && node.gone.is_none_or(|gone| gone.when.at >= since)
    });
    (well && writers.next().is_none())
        .then(|| (at, "a reader was told that others hold, and there was no writer:".to_owned()))
}

#[cfg(test)]
mod tests {
    use crate::event::Ending;
    use crate::sketch::Sketch;
    use crate::violation::Invariant::R2;

    #[test]
    fn a_reader_that_waits_for_readers_is_caught() {
        let second = |granted_at: u64| {
            let mut sketch = Sketch::new();
            let (one, other) = (sketch.at(2_100).read(0), sketch.read(1));
            sketch.create(one).create(other).at(2_110).grant(one);
            sketch
                .at(granted_at)
                .grant(other)
                .at(4_000)
                .dropped(one)
                .dropped(other)
                .delete(one)
                .delete(other);
            sketch.end(5_000)
        };
        second(2_300).holds();
        second(3_500).breaks(R2);
    }

    #[test]
    fn a_reader_is_busy_only_where_a_writer_is() {
        let tried = |writes: bool| {
            let mut sketch = Sketch::new();
            let other = if writes { sketch.at(2_100).write(0) } else { sketch.at(2_100).read(0) };
            sketch.create(other).at(2_110).grant(other);
            let reader = sketch.at(2_500).try_read(1);
            sketch.at(2_505).ended(reader, Ending::Busy).end(3_000)
        };
        tried(true).holds();
        tried(false).breaks(R2);
    }
}
