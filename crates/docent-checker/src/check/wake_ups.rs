use super::Found;
use crate::contender::Contender;
use crate::event::{ClientId, What};
use crate::scene::Scene;
use crate::truth::NodeLife;
use crate::violation::{Invariant, Violation};
use std::collections::{BTreeSet, HashMap};

/// **Wake-ups of readers and writers**: a contender that leaves wakes those that it was the nearest one in
/// the way of. So a writer wakes the readers right behind it or one writer, and a reader one writer, if it is
/// the last before that.
///
/// A reader that takes over the place of its writer is in the way of all that wait for that writer. Its own
/// client does not count. A client that has stopped to wait may still hear of the node it watched. Assumed:
/// events are recorded.
pub(super) fn check(scene: &Scene<'_>, found: &mut Found) {
    let waited = waited(scene);
    for (_, event) in scene.events() {
        let (What::Notified { path }, Some(client)) = (&event.what, event.client) else { continue };
        let at = event.at + scene.tolerances().grain;
        let Some(index) = scene.truth.node_at(path, at) else { continue };
        let node = &scene.truth.nodes()[index];
        let has_sides = node.contender.as_ref().is_some_and(Contender::has_sides);
        let is_gone = node.gone.is_some_and(|gone| gone.when.at <= at);
        if has_sides && is_gone && scene.sides.place(index).is_some() && !waited.contains(&(client, index)) {
            let what = "a client was woken by one who was in nobody's way there:";
            found.push(
                Violation::new(Invariant::R5, event.at, what).client(client).path(node.folder()).path(path),
            );
        }
    }
}

/// Clients that waited for nodes, or owned them, each with the node.
fn waited(scene: &Scene<'_>) -> BTreeSet<(ClientId, usize)> {
    let mut clients: HashMap<i64, Option<ClientId>> = HashMap::new();
    let mut waited = BTreeSet::new();
    let mut places: HashMap<(&str, i32), Vec<usize>> = HashMap::new();
    for (index, node) in scene.truth.contenders() {
        places.entry(seat(node)).or_default().push(index);
    }
    let in_place_of = |index: usize| places.get(&seat(&scene.truth.nodes()[index])).into_iter().flatten();
    for (index, node) in scene.truth.contenders() {
        let Some(place) = scene.sides.place(index) else { continue };
        let client = *clients.entry(node.owner).or_insert_with(|| scene.client_of(node.owner));
        waited.extend(client.into_iter().flat_map(|client| {
            let blockers = place.blockers.iter().copied().chain([index]);
            blockers.flat_map(in_place_of).map(move |node| (client, *node))
        }));
    }
    waited
}

/// The line of a node, and its number there.
fn seat(node: &NodeLife) -> (&str, i32) {
    (node.folder(), node.contender.as_ref().map_or(0, |contender| contender.number))
}

#[cfg(test)]
mod tests {
    use crate::event::{Ending, What};
    use crate::sketch::Sketch;
    use crate::violation::Invariant::R5;

    /// A writer leaves with others behind it, which are told or not.
    fn woken(behind: [bool; 3], notified: &[u32]) -> Sketch {
        let mut sketch = Sketch::new();
        let writer = sketch.at(100).write(0);
        sketch.create(writer);
        for (client, writes) in (1..).zip(behind) {
            let attempt = if writes { sketch.write(client) } else { sketch.read(client) };
            sketch.create(attempt);
        }
        let gone = sketch.node(writer);
        sketch.at(110).grant(writer).at(200).dropped(writer).delete(writer);
        for client in notified {
            sketch.at(202).tell(*client, What::Notified { path: gone.clone() });
        }
        sketch.end(300)
    }

    #[test]
    fn a_writer_wakes_the_readers_behind_it() {
        woken([false, false, false], &[0, 1, 2, 3]).holds();
        woken([false, false, true], &[0, 1, 2]).holds();
        woken([false, false, true], &[3]).breaks(R5);
    }

    #[test]
    fn a_writer_wakes_one_writer() {
        woken([true, false, true], &[1]).holds();
        woken([true, false, true], &[1, 2]).breaks(R5);
    }

    #[test]
    fn a_reader_wakes_the_writer_that_is_next() {
        let woken = |first: bool| {
            let mut sketch = Sketch::new();
            let readers = [sketch.at(100).read(0), sketch.read(1)];
            let writer = sketch.write(2);
            sketch.create(readers[0]).create(readers[1]).create(writer).at(110).grant(readers[0]);
            sketch.grant(readers[1]);
            let leaves = readers[usize::from(!first)];
            let gone = sketch.node(leaves);
            sketch.at(200).dropped(leaves).delete(leaves).at(202).tell(2, What::Notified { path: gone });
            sketch.end(300)
        };
        woken(false).holds();
        woken(true).breaks(R5);
    }

    #[test]
    fn who_waits_for_a_writer_may_be_woken_by_the_reader_that_it_was_to_become() {
        let mut sketch = Sketch::new();
        let (writer, next) = (sketch.at(100).write(0), sketch.write(1));
        sketch.create(writer).create(next).at(110).grant(writer);
        let reader = sketch.at(150).releasing(writer).read(0);
        sketch.create_in_place_of(writer, reader).at(199).ended(reader, Ending::Cancelled);
        sketch.at(200).delete(reader).delete(writer);
        let gone = sketch.node(reader);
        sketch.clone().at(202).tell(1, What::Notified { path: gone.clone() }).end(300).holds();
        sketch.at(202).tell(2, What::Notified { path: gone }).end(300).breaks(R5);
    }
}
