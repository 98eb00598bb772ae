use super::Found;
use crate::attempts::Story;
use crate::event::{ClientId, What};
use crate::run::Tolerances;
use crate::scene::Scene;
use crate::truth::{NodeLife, Remover};
use crate::violation::{Invariant, Violation};
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// **First come, first served**: grants follow the order of the line, and a contender keeps its place until
/// its attempt is over: its client does not give it up before.
///
/// A contender that loses its node to somebody else, or its session, takes a new place at the end of the
/// line. An acquire of several things begins anew when it loses one, and may give up its place for the others
/// then. A contender that could not learn of its place in time, because something was wrong, gives it up and
/// tries again; and a candidate that is the first may lose its lease while it waits for a takeover delay.
pub(super) fn check(scene: &Scene<'_>, found: &mut Found) {
    overtaken(scene, found);
    places_given_up(scene, found);
}

/// A grant behind one that was later in the line, while its node was there all the time.
fn overtaken(scene: &Scene<'_>, found: &mut Found) {
    let exclusive = scene.attempts.all().filter(|story| story.is_exclusive());
    let granted = exclusive.filter_map(|story| Some((story.granted?.0, story, scene.node_of(story)?.1)));
    let mut granted: Vec<_> = granted.collect();
    granted.sort_by_key(|(at, ..)| *at);
    // Of each path, the grant so far whose node was created last.
    let mut latest: BTreeMap<&str, (i64, Duration, &Story<'_>)> = BTreeMap::new();
    for (at, story, node) in granted {
        let path = story.attempt.path.as_str();
        if let Some((_, before, other)) = latest.get(path).filter(|(czxid, ..)| *czxid > node.created.zxid)
            && node.is_alive_at(*before)
        {
            let what = "overtaken in the line by the second:";
            found.push(violation(story, at, what, node).attempt(other.id()).client(other.client));
        }
        if latest.get(path).is_none_or(|(czxid, ..)| *czxid < node.created.zxid) {
            latest.insert(path, (node.created.zxid, at, story));
        }
    }
}

fn places_given_up(scene: &Scene<'_>, found: &mut Found) {
    let Tolerances { grain, operation, round_trip, .. } = *scene.tolerances();
    let asked = creates_asked(scene);
    for (index, node) in scene.truth.contenders() {
        let Some(gone) = node.gone.filter(|gone| gone.by == Remover::Session(node.owner)) else { continue };
        let Some(client) = scene.client_of(node.owner) else { continue };
        // The contender may have stopped waiting before the server made its place.
        let created = asked.get(&(client, without_number(&node.path))).copied().unwrap_or(node.created.at);
        let until = gone.when.at + grain;
        let closing =
            scene.life(client).and_then(|life| life.closing).is_some_and(|closing| closing <= until);
        // Nobody waits by the place of a writer that steps down.
        let taken_over = scene.sides.place(index).is_some_and(|place| place.taken_over);
        // A candidate that comes first may lose its lease while it waits for the takeover delay, and give its
        // place up for that.
        let delayed = node.first.is_some() && !scene.elections.delay(node.folder()).is_zero();
        // A contender that is not told of its place in time, because something was wrong, draws another one.
        // Candidates may have had less time.
        let rough = scene.life(client).is_some_and(|life| !life.apart.spare(created, gone.when.at));
        let failed = rough && scene.elections.delays().contains_key(node.folder());
        // A server made it so late that it had been looked for in vain.
        let late = rough && node.created.at > created + round_trip + grain;
        if closing || taken_over || delayed || failed || late || !scene.holders(index).is_empty() {
            continue;
        }
        let may = |story: &Story<'_>| {
            scene.attempts.is_grouped(story.id())
                || story.waited_until().is_some_and(|over| over <= until)
                || rough && story.began + operation <= until
        };
        let since = created.saturating_sub(grain);
        let begun = scene.attempts.waiting(client, node.folder(), since, created + grain);
        let mut waiting = begun.filter(|story| story.waited_until().is_none_or(|over| over >= since));
        let Some(first) = waiting.next() else { continue };
        if !may(first) && !waiting.any(may) {
            let what = "its client gave up its place while it waited:";
            found.push(violation(first, gone.when.at, what, node));
        }
    }
}

/// Times at which each client asked for the nodes whose numbers the server chose.
fn creates_asked<'a>(scene: &Scene<'a>) -> HashMap<(ClientId, &'a str), Duration> {
    let creates = scene.events().filter_map(|(_, event)| match &event.what {
        What::Asked { path: Some(path), .. } => Some(((event.client?, path.as_str()), event.at)),
        _ => None,
    });
    creates.collect()
}

/// The path that a sequential node was asked for with.
fn without_number(path: &str) -> &str {
    const DIGITS: usize = 10;
    path.len().checked_sub(DIGITS).and_then(|end| path.get(..end)).unwrap_or(path)
}

fn violation(story: &Story<'_>, at: Duration, what: &str, node: &NodeLife) -> Violation {
    Violation::new(Invariant::M5, at, what)
        .attempt(story.id())
        .client(story.client)
        .path(story.attempt.path.clone())
        .path(node.path.clone())
}

#[cfg(test)]
mod tests {
    use crate::event::{Ending, Event, FaultKind, What};
    use crate::sketch::{Sketch, client};
    use crate::violation::Invariant::M5;
    use std::time::Duration;

    #[test]
    fn who_is_overtaken_in_the_line_is_seen() {
        let mut sketch = Sketch::new();
        let (first, second) = (sketch.at(100).begin(0), sketch.begin(1));
        sketch.create(first).create(second).at(110).grant(second).at(120).dropped(second).delete(second);
        sketch.at(130).grant(first).end(1_000).breaks_also(M5);
    }

    #[test]
    fn a_waiter_keeps_its_place() {
        let mut sketch = Sketch::new();
        let (first, second) = (sketch.at(100).begin(0), sketch.begin(1));
        sketch.create(first).create(second).at(110).grant(first).at(150).delete(second).create(second);
        sketch.at(200).dropped(first).delete(first).at(210).grant(second).end(1_000).breaks(M5);
    }

    #[test]
    fn a_candidate_that_did_not_get_to_its_place_in_time_tries_again() {
        let given_up = |well: bool| {
            let mut sketch = Sketch::new();
            let (first, second) = (sketch.at(100).campaign(0), sketch.campaign(1));
            sketch.create(first).at(110).grant(first);
            if !well {
                sketch.fault(1, FaultKind::Reset { applied: true });
            }
            sketch.create(second).at(150).delete(second).at(600).create(second);
            sketch.end(1_000)
        };
        given_up(false).holds();
        given_up(true).breaks(M5);
    }

    #[test]
    fn who_stops_waiting_gives_up_its_place() {
        let mut sketch = Sketch::new();
        let (first, second) = (sketch.at(100).begin(0), sketch.begin(1));
        sketch.create(first).create(second).at(110).grant(first).at(150).ended(second, Ending::Cancelled);
        sketch.at(151).delete(second).end(1_000).holds();
    }

    #[test]
    fn a_place_that_is_made_late_is_not_taken_for_that_of_the_next_attempt() {
        let mut sketch = Sketch::new();
        let cancelled = sketch.at(100).begin(0);
        sketch.at(102).ended(cancelled, Ending::Cancelled);
        let next = sketch.at(105).begin(0);
        sketch.at(120).create(cancelled).create(next).at(122).delete(cancelled);
        sketch.at(130).grant(next).at(140).dropped(next).at(141).delete(next).end(1_000);
        sketch.breaks(M5);
        let (late, asked) = (sketch.node(cancelled), Duration::from_millis(100));
        let path = Some(late[..late.len() - 10].to_owned());
        let begun = sketch.run.events.iter().position(|event| matches!(event.what, What::Began(_)));
        let what = What::Asked { op: 15, path };
        sketch.run.events.insert(begun.unwrap() + 1, Event { at: asked, client: Some(client(0)), what });
        sketch.holds();
    }

    #[test]
    fn who_loses_its_place_to_others_takes_a_new_one() {
        let mut sketch = Sketch::new();
        let attempts = [0, 1, 2].map(|client| sketch.at(100).begin(client));
        for attempt in attempts {
            sketch.create(attempt);
        }
        let own = sketch.node(attempts[1]);
        sketch.at(110).grant(attempts[0]).at(150).delete_path(&own, 7).at(160).create(attempts[1]);
        sketch.at(200).dropped(attempts[0]).delete(attempts[0]).at(202).grant(attempts[2]);
        sketch.at(210).dropped(attempts[2]).delete(attempts[2]).at(220).grant(attempts[1]);
        sketch.end(1_000).holds();
    }
}
