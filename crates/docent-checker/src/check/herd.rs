use super::Found;
use crate::attempts::Story;
use crate::event::{ClientId, What};
use crate::journal::ChangeKind;
use crate::scene::Scene;
use crate::truth::NodeLife;
use crate::violation::{Invariant, Violation};
use docent_proto::OpCode;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

/// **No herd**: the deletion of a node in a line wakes one waiter, or two where the one after the next
/// prepares; and nobody looks at a line again and again.
///
/// Its own client does not count, and a client that has stopped to wait may still hear of the node it
/// watched. R5 asks which clients a reader or writer wakes that leaves. A client that watches a folder is
/// woken by each change of it, and counts for that change. A line is listed as often as it is joined and left
/// at most, twice each, and once more for each attempt that was waiting or holding when its client's link
/// came back. Clients that look on at an election are not counted there, and how often its line is listed is
/// asked only where nobody looks on. Assumed: events and requests are recorded, and workloads list no line by
/// themselves.
pub(super) fn check(scene: &Scene<'_>, found: &mut Found) {
    woken(scene, found);
    for (path, (listed, at)) in listings(scene) {
        let most = most_listings(scene, path);
        if listed > most {
            let what = format!("a line was listed {listed} times, where {most} are enough:");
            found.push(Violation::new(Invariant::M7, at, what).path(path));
        }
    }
}

fn woken(scene: &Scene<'_>, found: &mut Found) {
    let folders: BTreeSet<&str> = scene.truth.contenders().map(|(_, node)| node.folder()).collect();
    let changes = changes_of(scene, &folders);
    let mut woken: BTreeMap<(&str, Duration), BTreeSet<ClientId>> = BTreeMap::new();
    for (_, event) in scene.events() {
        let (What::Notified { path }, Some(client)) = (&event.what, event.client) else { continue };
        if let Some(changes) = changes.get(path.as_str()) {
            // A folder: the last change of it is what this tells of.
            let last =
                changes.partition_point(|at| *at <= event.at).checked_sub(1).map(|index| changes[index]);
            woken.entry((path, last.unwrap_or_default())).or_default().insert(client);
        } else if let Some(node) = deleted(scene, path, event.at)
            && scene.client_of(node.owner) != Some(client)
        {
            let gone = node.gone.map(|gone| gone.when.at);
            woken.entry((path, gone.unwrap_or_default())).or_default().insert(client);
        }
    }
    for ((path, at), clients) in woken {
        let most = scene.tolerances().woken;
        let folder = docent_proto::parent(path).unwrap_or("/");
        let onlookers: BTreeSet<ClientId> =
            [path, folder].into_iter().flat_map(|path| scene.elections.looking_on(path)).collect();
        let clients: BTreeSet<ClientId> = clients.difference(&onlookers).copied().collect();
        if clients.len() > most && clients.len() > most + gone_waiters(scene, path, at) {
            let what = format!("{} clients were woken by one change:", clients.len());
            let violation = Violation::new(Invariant::M7, at, what).path(path);
            found.push(clients.into_iter().fold(violation, Violation::client));
        }
    }
}

/// Number of clients that stopped to wait while a node was there: they may have watched it, and hear of it
/// still.
fn gone_waiters(scene: &Scene<'_>, path: &str, at: Duration) -> usize {
    let Some(node) = scene.truth.node_at(path, at).map(|index| &scene.truth.nodes()[index]) else { return 0 };
    let stopped = |story: &&Story<'_>| {
        let over = story.ended.map(|(over, _)| over);
        let lately = |over: Duration| over <= at && at <= over + scene.facts().expiry();
        story.attempt.path == node.folder() && over.is_some_and(|over| node.is_alive_at(over))
            || story.attempt.path == node.path && over.is_some_and(lately)
    };
    scene.attempts.all().filter(stopped).count()
}

/// Times at which children of each folder came or went.
fn changes_of<'a>(scene: &'a Scene<'_>, folders: &BTreeSet<&'a str>) -> HashMap<&'a str, Vec<Duration>> {
    let mut changes: HashMap<&str, Vec<Duration>> =
        folders.iter().map(|folder| (*folder, Vec::new())).collect();
    for change in &scene.run.journal {
        let folder = docent_proto::parent(&change.path).unwrap_or("/");
        if matches!(change.kind, ChangeKind::Created | ChangeKind::Deleted)
            && let Some(changes) = changes.get_mut(folder)
        {
            changes.push(change.at);
        }
    }
    changes
}

/// The contender at a path, if it is gone: events that come earlier tell of its data, which is how places are
/// asked for.
fn deleted<'s>(scene: &'s Scene<'_>, path: &str, at: Duration) -> Option<&'s NodeLife> {
    let at = at + scene.tolerances().grain;
    let node = &scene.truth.nodes()[scene.truth.node_at(path, at)?];
    let stands = node.contender.as_ref().is_some_and(|contender| !contender.has_sides());
    (stands && node.gone.is_some_and(|gone| gone.when.at <= at)).then_some(node)
}

/// Number of listings of each line, and the time of the last.
fn listings<'a>(scene: &Scene<'a>) -> BTreeMap<&'a str, (usize, Duration)> {
    let lists = [OpCode::GetChildren, OpCode::GetChildren2].map(|op| op as i32);
    let mut listings: BTreeMap<&str, (usize, Duration)> = BTreeMap::new();
    for (_, event) in scene.events() {
        if let What::Asked { op, path: Some(path) } = &event.what
            && lists.contains(op)
        {
            let (count, last) = listings.entry(path).or_default();
            *count += 1;
            *last = event.at;
        }
    }
    listings.retain(|path, _| {
        let looked_on = !scene.elections.looking_on(path).is_empty();
        scene.truth.contenders_in(path).next().is_some() && !looked_on
    });
    listings
}

fn most_listings(scene: &Scene<'_>, path: &str) -> usize {
    let nodes = scene.truth.contenders_in(path).map(|(index, node)| {
        let wake_ups = scene.sides.place(index).map_or(0, |place| place.blockers.len());
        2 + 2 * usize::from(node.gone.is_some()) + wake_ups
    });
    let mut most: usize = nodes.sum();
    for (client, _) in scene.attempts.seats().filter(|(_, seat)| *seat == path) {
        for story in scene.attempts.at_seat(client, path) {
            // A try looks before it joins.
            most +=
                1 + scene.life(client).map_or(0, |life| life.links_between(story.began, story.given_up()));
        }
    }
    most
}

#[cfg(test)]
mod tests {
    use crate::event::{AttemptId, Ending, Event, LinkState, Onlooking, What};
    use crate::sketch::{LOCK, Sketch, client};
    use crate::violation::Invariant::M7;
    use std::time::Duration;

    fn woken(notified: &[u32]) -> Sketch {
        let mut sketch = Sketch::new();
        let attempts = [0, 1, 2, 3].map(|client| sketch.at(100).begin(client));
        for attempt in attempts {
            sketch.create(attempt);
        }
        let gone = sketch.node(attempts[0]);
        sketch.at(110).grant(attempts[0]).at(200).dropped(attempts[0]).delete(attempts[0]);
        for client in notified {
            sketch.at(202).tell(*client, What::Notified { path: gone.clone() });
        }
        sketch.at(203).grant(attempts[1]).end(1_000)
    }

    #[test]
    fn a_deletion_wakes_the_next_one_and_its_own_client() {
        woken(&[0, 1]).holds();
        woken(&[0, 1, 2]).holds();
        woken(&[0, 1, 2, 3]).breaks(M7);
    }

    #[test]
    fn who_looks_on_is_woken_too() {
        let mut sketch = woken(&[0, 1, 2, 3]);
        let what = What::LookedOn(AttemptId(9), Onlooking::Waits(LOCK.to_owned()));
        sketch.run.events.insert(4, Event { at: Duration::from_millis(10), client: Some(client(3)), what });
        sketch.holds();
    }

    #[test]
    fn where_nobody_prepares_one_is_enough() {
        let mut sketch = woken(&[0, 1, 2]);
        sketch.run.facts.tolerances.woken = 1;
        sketch.breaks(M7);
    }

    #[test]
    fn who_stopped_to_wait_may_still_hear_of_it() {
        let mut sketch = Sketch::new();
        let attempts = [0, 1, 2, 3].map(|client| sketch.at(100).begin(client));
        for attempt in attempts {
            sketch.create(attempt);
        }
        let gone = sketch.node(attempts[0]);
        sketch.at(110).grant(attempts[0]).at(150).ended(attempts[3], Ending::Cancelled).delete(attempts[3]);
        sketch.at(200).dropped(attempts[0]).delete(attempts[0]);
        for client in [1, 2, 3] {
            sketch.at(202).tell(client, What::Notified { path: gone.clone() });
        }
        sketch.at(203).grant(attempts[1]).end(1_000).holds();
    }

    #[test]
    fn whoever_watches_the_folder_is_woken_by_everything() {
        let mut sketch = Sketch::new();
        let attempts = [0, 1, 2, 3].map(|client| sketch.at(100).begin(client));
        for attempt in attempts {
            sketch.create(attempt);
        }
        sketch.at(110).grant(attempts[0]).at(200).dropped(attempts[0]).delete(attempts[0]);
        for client in [1, 2, 3] {
            sketch.at(202).tell(client, What::Notified { path: LOCK.to_owned() });
        }
        sketch.at(203).grant(attempts[1]).end(1_000).breaks(M7);
    }

    #[test]
    fn a_line_is_not_listed_again_and_again() {
        let listed = |times: usize, reconnects: usize| {
            let mut sketch = Sketch::new();
            let attempt = sketch.at(100).begin(0);
            sketch.create(attempt);
            for _ in 0..reconnects {
                sketch.link(0, LinkState::Suspended).link(0, LinkState::Connected);
            }
            for _ in 0..times {
                sketch.tell(0, What::Asked { op: 12, path: Some(LOCK.to_owned()) });
            }
            sketch.at(110).grant(attempt).end(1_000)
        };
        listed(3, 0).holds();
        listed(4, 0).breaks(M7);
        listed(4, 1).holds();
    }
}
