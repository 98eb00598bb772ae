use crate::analysis::Analysis;
use crate::attempt_trace::AttemptTrace;
use crate::event::{ClientId, EventKind};
use crate::journal::ChangeKind;
use crate::journal_replay::{NodeLife, Remover};
use crate::violation::{Found, Invariant, Violation};
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
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    woken(analysis, found);
    for (path, (listed, at)) in listings(analysis) {
        let most = most_listings(analysis, path);
        if listed > most {
            let what = format!("a line was listed {listed} times, where {most} are enough:");
            found.push(Violation::new(Invariant::M7, at, what).path(path));
        }
    }
}

fn woken(analysis: &Analysis<'_>, found: &mut Found) {
    let folders: BTreeSet<&str> = analysis.replay.contenders().map(|(_, node)| node.folder()).collect();
    let changes = changes_of(analysis, &folders);
    let mut woken: BTreeMap<(&str, Duration), BTreeSet<ClientId>> = BTreeMap::new();
    for (_, event) in analysis.events() {
        let (EventKind::Notified { path }, Some(client)) = (&event.kind, event.client) else { continue };
        if let Some(changes) = changes.get(path.as_str()) {
            // A folder: the last change of it is what this tells of.
            let last =
                changes.partition_point(|at| *at <= event.at).checked_sub(1).map(|index| changes[index]);
            woken.entry((path, last.unwrap_or_default())).or_default().insert(client);
        } else if let Some(node) = deleted(analysis, path, event.at)
            && analysis.client_of(node.owner) != Some(client)
        {
            let gone = node.gone.map(|gone| gone.when.at);
            woken.entry((path, gone.unwrap_or_default())).or_default().insert(client);
        }
    }
    for ((path, at), clients) in woken {
        let most = analysis.tolerances().woken;
        let folder = docent_proto::parent(path).unwrap_or("/");
        let onlookers: BTreeSet<ClientId> =
            [path, folder].into_iter().flat_map(|path| analysis.elections.looking_on(path)).collect();
        let clients: BTreeSet<ClientId> = clients.difference(&onlookers).copied().collect();
        if clients.len() > most && clients.len() > most + gone_waiters(analysis, path, at) {
            let what = format!("{} clients were woken by one change:", clients.len());
            let violation = Violation::new(Invariant::M7, at, what).path(path);
            found.push(clients.into_iter().fold(violation, Violation::client));
        }
    }
}

/// Number of clients that stopped waiting while a node was there, or whose own node somebody else deleted:
/// they may have watched it, and hear of it still.
fn gone_waiters(analysis: &Analysis<'_>, path: &str, at: Duration) -> usize {
    let Some(node) = analysis.replay.node_at(path, at).map(|index| &analysis.replay.nodes()[index]) else {
        return 0;
    };
    let stopped = |trace: &&AttemptTrace<'_>| {
        let over = trace.ended.map(|(over, _)| over);
        let lately = |over: Duration| over <= at && at <= over + analysis.facts().expiry();
        trace.attempt.path == node.folder() && over.is_some_and(|over| node.is_alive_at(over))
            || trace.attempt.path == node.path && over.is_some_and(lately)
    };
    let deleted_by_others = |(_, other): &(_, &NodeLife)| {
        let gone = other.gone.as_ref().filter(|gone| gone.when.at <= at && node.is_alive_at(gone.when.at));
        gone.is_some_and(|gone| matches!(gone.by, Remover::Session(by) if by != other.owner))
    };
    analysis.attempts.all().filter(stopped).count()
        + analysis.replay.contenders_in(node.folder()).filter(deleted_by_others).count()
}

/// Times at which children of each folder came or went.
fn changes_of<'a>(
    analysis: &'a Analysis<'_>,
    folders: &BTreeSet<&'a str>,
) -> HashMap<&'a str, Vec<Duration>> {
    let mut changes: HashMap<&str, Vec<Duration>> =
        folders.iter().map(|folder| (*folder, Vec::new())).collect();
    for change in &analysis.run.journal {
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
fn deleted<'s>(analysis: &'s Analysis<'_>, path: &str, at: Duration) -> Option<&'s NodeLife> {
    let at = at + analysis.tolerances().grain;
    let node = &analysis.replay.nodes()[analysis.replay.node_at(path, at)?];
    let stands = node.contender.as_ref().is_some_and(|contender| !contender.is_reader_or_writer());
    (stands && node.gone.is_some_and(|gone| gone.when.at <= at)).then_some(node)
}

/// Number of listings of each line, and the time of the last.
fn listings<'a>(analysis: &Analysis<'a>) -> BTreeMap<&'a str, (usize, Duration)> {
    let lists = [OpCode::GetChildren, OpCode::GetChildren2].map(|op| op as i32);
    let mut listings: BTreeMap<&str, (usize, Duration)> = BTreeMap::new();
    for (_, event) in analysis.events() {
        if let EventKind::Asked { op, path: Some(path) } = &event.kind
            && lists.contains(op)
        {
            let (count, last) = listings.entry(path).or_default();
            *count += 1;
            *last = event.at;
        }
    }
    listings.retain(|path, _| {
        let looked_on = !analysis.elections.looking_on(path).is_empty();
        analysis.replay.contenders_in(path).next().is_some() && !looked_on
    });
    listings
}

fn most_listings(analysis: &Analysis<'_>, path: &str) -> usize {
    let nodes = analysis.replay.contenders_in(path).map(|(index, node)| {
        let wake_ups =
            analysis.rw_lines.place(index).map_or(0, |place| place.blockers.len() + place.others.len());
        2 + 2 * usize::from(node.gone.is_some()) + wake_ups
    });
    let mut most: usize = nodes.sum();
    for (client, _) in analysis.attempts.clients_and_paths().filter(|(_, at)| *at == path) {
        for trace in analysis.attempts.of_client_at(client, path) {
            // A try looks before it joins.
            most +=
                1 + analysis.life(client).map_or(0, |life| life.links_between(trace.began, trace.given_up()));
        }
    }
    most
}

#[cfg(test)]
mod tests {
    use crate::event::{AttemptId, Ending, Event, EventKind, LinkState, Onlooking};
    use crate::history::{HistoryBuilder, LOCK, client};
    use crate::violation::Invariant::M7;
    use std::time::Duration;

    fn woken(notified: &[u32]) -> HistoryBuilder {
        let mut history = HistoryBuilder::new();
        let attempts = [0, 1, 2, 3].map(|client| history.at(100).begin(client));
        for attempt in attempts {
            history.create(attempt);
        }
        let gone = history.node(attempts[0]);
        history.at(110).grant(attempts[0]).at(200).dropped(attempts[0]).delete(attempts[0]);
        for client in notified {
            history.at(202).tell(*client, EventKind::Notified { path: gone.clone() });
        }
        history.at(203).grant(attempts[1]).end(1_000)
    }

    #[test]
    fn a_deletion_wakes_the_next_one_and_its_own_client() {
        woken(&[0, 1]).holds();
        woken(&[0, 1, 2]).holds();
        woken(&[0, 1, 2, 3]).breaks(M7);
    }

    #[test]
    fn who_looks_on_is_woken_too() {
        let mut history = woken(&[0, 1, 2, 3]);
        let kind = EventKind::LookedOn(AttemptId(9), Onlooking::Waits(LOCK.to_owned()));
        history.run.events.insert(4, Event { at: Duration::from_millis(10), client: Some(client(3)), kind });
        history.holds();
    }

    #[test]
    fn where_nobody_prepares_one_is_enough() {
        let mut history = woken(&[0, 1, 2]);
        history.run.facts.tolerances.woken = 1;
        history.breaks(M7);
    }

    #[test]
    fn who_stopped_to_wait_may_still_hear_of_it() {
        let mut history = HistoryBuilder::new();
        let attempts = [0, 1, 2, 3].map(|client| history.at(100).begin(client));
        for attempt in attempts {
            history.create(attempt);
        }
        let gone = history.node(attempts[0]);
        history.at(110).grant(attempts[0]).at(150).ended(attempts[3], Ending::Cancelled).delete(attempts[3]);
        history.at(200).dropped(attempts[0]).delete(attempts[0]);
        for client in [1, 2, 3] {
            history.at(202).tell(client, EventKind::Notified { path: gone.clone() });
        }
        history.at(203).grant(attempts[1]).end(1_000).holds();
    }

    #[test]
    fn whose_node_somebody_else_deleted_may_still_hear_of_it() {
        let told = |deleted: bool| {
            let mut history = HistoryBuilder::new();
            let attempts = [0, 1, 2, 3].map(|client| history.at(100).begin(client));
            for attempt in attempts {
                history.create(attempt);
            }
            let (gone, behind) = (history.node(attempts[0]), history.node(attempts[3]));
            history.at(110).grant(attempts[0]);
            if deleted {
                history.at(150).delete_path(&behind, 99);
            }
            history.at(200).dropped(attempts[0]).delete(attempts[0]);
            for client in [1, 2, 3] {
                history.at(202).tell(client, EventKind::Notified { path: gone.clone() });
            }
            history.at(203).grant(attempts[1]).end(1_000)
        };
        told(true).holds();
        told(false).breaks(M7);
    }

    #[test]
    fn whoever_watches_the_folder_is_woken_by_everything() {
        let mut history = HistoryBuilder::new();
        let attempts = [0, 1, 2, 3].map(|client| history.at(100).begin(client));
        for attempt in attempts {
            history.create(attempt);
        }
        history.at(110).grant(attempts[0]).at(200).dropped(attempts[0]).delete(attempts[0]);
        for client in [1, 2, 3] {
            history.at(202).tell(client, EventKind::Notified { path: LOCK.to_owned() });
        }
        history.at(203).grant(attempts[1]).end(1_000).breaks(M7);
    }

    #[test]
    fn a_line_is_not_listed_again_and_again() {
        let listed = |times: usize, reconnects: usize| {
            let mut history = HistoryBuilder::new();
            let attempt = history.at(100).begin(0);
            history.create(attempt);
            for _ in 0..reconnects {
                history.link(0, LinkState::Suspended).link(0, LinkState::Connected);
            }
            for _ in 0..times {
                history.tell(0, EventKind::Asked { op: 12, path: Some(LOCK.to_owned()) });
            }
            history.at(110).grant(attempt).end(1_000)
        };
        listed(3, 0).holds();
        listed(4, 0).breaks(M7);
        listed(4, 1).holds();
    }
}
