use super::Found;
use crate::history::members::{Member, Room, members};
use crate::history::scene::Scene;
use crate::history::truth::{Moment, NodeLife};
use crate::history::violation::{Invariant, Violation};
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// Who is in a room, and since when each node was a member with enough others.
type Entering<'a> = (Room<'a>, HashMap<usize, Moment>);

/// **The way into a double barrier**: nobody is let in before as many members are there at the same time as were asked for, or
/// while one is still there who was there then. Who was there then is let in as soon as news and a few round trips allow, while its link
/// is well.
///
/// Only nodes that are named as members are count; a node that was made anew is another one.
pub(super) fn check(scene: &Scene<'_>, found: &mut Found) {
    let mut rooms = BTreeMap::<(&str, u32), Entering<'_>>::new();
    for member in members(&scene.run.events) {
        let (room, full) = rooms.entry((member.path, member.members)).or_insert_with(|| {
            let room = Room::of(&scene.truth, member.path);
            let full = room.full(member.members);
            (room, full)
        });
        if let Some((at, what)) = wrong(scene, &member, room, full) {
            found.push(Violation::new(Invariant::B1, at, what).client(member.client).path(member.path));
        }
    }
}

fn wrong(
    scene: &Scene<'_>,
    member: &Member<'_>,
    room: &Room<'_>,
    full: &HashMap<usize, Moment>,
) -> Option<(Duration, String)> {
    let (at, node) = member.entered?;
    let tolerances = scene.tolerances();
    let lives: Vec<(usize, &NodeLife)> = room.lives(node, at, tolerances).collect();
    let in_time = |since: &Moment| since.at <= at + tolerances.grain;
    let was_there = |(index, _): &(usize, &NodeLife)| full.get(index).is_some_and(in_time);
    let met = |(_, own): &(usize, &NodeLife)| {
        room.nodes.iter().filter(|one| was_there(one)).any(|(other, node)| {
            let from = full[other].max(own.created);
            let until = |node: &NodeLife| node.gone.is_none_or(|gone| gone.when > from);
            until(node) && until(own)
        })
    };
    if !lives.iter().any(|life| was_there(life) || met(life)) {
        return Some((at, format!("{} was let in before {} were there:", member.id, member.members)));
    }
    let since = lives.iter().filter_map(|(index, _)| full.get(index)).map(|since| since.at).max()?;
    let since = since.max(member.came);
    let due = since + tolerances.news * 2 + tolerances.round_trip * 6 + tolerances.scheduling;
    let well = scene.life(member.client)?.apart.spare(since.saturating_sub(tolerances.reconnect), due);
    (well && at > due)
        .then(|| (at, format!("{} was let in {:?} after all were there:", member.id, at - since)))
}

#[cfg(test)]
mod tests {
    use crate::history::sketch::Sketch;
    use crate::history::violation::Invariant::B1;

    #[test]
    fn members_are_let_in_together() {
        let mut sketch = Sketch::new();
        let (one, other) = (sketch.at(2_100).come(0, 2), sketch.at(2_200).come(1, 2));
        sketch.at(2_210).enter(&one).enter(&other).at(2_300).gone(&one).gone(&other).end(3_000).holds();
    }

    #[test]
    fn who_is_let_in_early_is_caught() {
        let mut sketch = Sketch::new();
        let one = sketch.at(2_100).come(0, 2);
        sketch.at(2_150).enter(&one);
        let other = sketch.at(2_200).come(1, 2);
        sketch.at(2_210).enter(&other).end(3_000).breaks(B1);
    }

    #[test]
    fn who_comes_late_is_let_in_while_others_are_in() {
        let late = |gone_first: bool| {
            let mut sketch = Sketch::new();
            let (one, other) = (sketch.at(2_100).come(0, 2), sketch.come(1, 2));
            sketch.at(2_110).enter(&one).enter(&other);
            if gone_first {
                sketch.at(2_200).gone(&one).gone(&other);
            }
            let late = sketch.at(2_300).come(2, 2);
            sketch.at(2_310).enter(&late).end(3_000)
        };
        late(false).holds();
        late(true).breaks(B1);
    }

    #[test]
    fn who_is_held_up_is_caught() {
        let mut sketch = Sketch::new();
        let (one, other) = (sketch.at(2_100).come(0, 2), sketch.come(1, 2));
        sketch.at(2_110).enter(&one).at(9_000).enter(&other).end(9_900).breaks(B1);
    }
}
