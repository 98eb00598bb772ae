use crate::analysis::Analysis;
use crate::attempt_trace::AttemptTrace;
use crate::event::{ClientId, EventKind};
use crate::journal::ChangeKind;
use crate::journal_replay::{NodeLife, Remover};
use crate::violation::{Found, Invariant, Violation};
use docent_proto::OpCode;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

/// **No herd**: the deletion of a node in a line wakes one waiter, or two if the waiter after the next one
/// prepares for its turn. No client lists a line repeatedly.
///
/// - The client that owned the node does not count. A client that stopped waiting may still receive an event
///   of the node that it watched.
/// - R5 checks which clients are woken by readers and writers.
/// - A client that watches a folder is woken by each of its changes, and counts for that change.
/// - A line is listed at most twice for each contender that joins or leaves it. One more listing is permitted
///   for each attempt that waited or held when its client's link was restored.
/// - Observers of an election are not counted. The number of listings is checked only for lines without
///   observers.
///
/// Assumed: events and requests are recorded, and workloads do not list lines.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    woken(analysis, found);
    for (path, (listed, at)) in listings(analysis) {
        let most = most_listings(analysis, path);
        if listed > most {
            let what = format!("a line was listed {listed} times, but {most} are enough:");
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
            // A folder: the event reports its last change.
            let last =
                changes.partition_point(|at| *at <= event.at).checked_sub(1).map(|index| changes[index]);
            woken.entry((path, last.unwrap_or_default())).or_default().insert(client);
        } else if let Some(node) = deleted_node(analysis, path, event.at)
            && analysis.client_of(node.owner) != Some(client)
        {
            let deleted = node.deleted.map(|deleted| deleted.when.at);
            woken.entry((path, deleted.unwrap_or_default())).or_default().insert(client);
        }
    }
    for ((path, at), clients) in woken {
        let most = analysis.tolerances().woken;
        let folder = docent_proto::parent(path).unwrap_or("/");
        let observers: BTreeSet<ClientId> =
            [path, folder].into_iter().flat_map(|path| analysis.elections.observers_of(path)).collect();
        let clients: BTreeSet<ClientId> = clients.difference(&observers).copied().collect();
        if clients.len() > most && clients.len() > most + former_waiters(analysis, path, at) {
            let what = format!("{} clients were woken by one change:", clients.len());
            let violation = Violation::new(Invariant::M7, at, what).path(path);
            found.push(clients.into_iter().fold(violation, Violation::client));
        }
    }
}

/// Number of clients that stopped waiting while a node existed, or whose own node a third party deleted. They
/// may have watched the node, and still receive its event.
fn former_waiters(analysis: &Analysis<'_>, path: &str, at: Duration) -> usize {
    let Some(node) = analysis.replay.node_at(path, at).map(|index| &analysis.replay.nodes()[index]) else {
        return 0;
    };
    let stopped = |trace: &&AttemptTrace<'_>| {
        let ended = trace.ended.map(|(ended, _)| ended);
        let lately = |ended: Duration| ended <= at && at <= ended + analysis.facts().expiry();
        trace.attempt.path == node.folder() && ended.is_some_and(|ended| node.is_alive_at(ended))
            || trace.attempt.path == node.path && ended.is_some_and(lately)
    };
    let deleted_by_third_party = |(_, other): &(_, &NodeLife)| {
        let deleted = other
            .deleted
            .as_ref()
            .filter(|deleted| deleted.when.at <= at && node.is_alive_at(deleted.when.at));
        deleted.is_some_and(|deleted| matches!(deleted.by, Remover::Session(by) if by != other.owner))
    };
    analysis.attempts.all().filter(stopped).count()
        + analysis.replay.contenders_in(node.folder()).filter(deleted_by_third_party).count()
}

/// Times at which children of each folder were created or deleted.
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

/// The contender at a path, if it was deleted. Earlier events report changes of its data, with which a holder
/// is asked to release.
fn deleted_node<'s>(analysis: &'s Analysis<'_>, path: &str, at: Duration) -> Option<&'s NodeLife> {
    let at = at + analysis.tolerances().grain;
    let node = &analysis.replay.nodes()[analysis.replay.node_at(path, at)?];
    let is_exclusive = node.contender.as_ref().is_some_and(|contender| !contender.is_reader_or_writer());
    (is_exclusive && node.deleted.is_some_and(|deleted| deleted.when.at <= at)).then_some(node)
}

/// Number of listings of each line, and the time of the last one.
fn listings<'a>(analysis: &Analysis<'a>) -> BTreeMap<&'a str, (usize, Duration)> {
    let lists = [OpCode::GetChildren, OpCode::GetChildren2].map(|op| op as i32);
    let mut listings: BTreeMap<&str, (usize, Duration)> = BTreeMap::new();
    for (_, event) in analysis.events() {
        if let EventKind::Requested { op, path: Some(path) } = &event.kind
            && lists.contains(op)
        {
            let (count, last) = listings.entry(path).or_default();
            *count += 1;
            *last = event.at;
        }
    }
    listings.retain(|path, _| {
        let is_observed = !analysis.elections.observers_of(path).is_empty();
        analysis.replay.contenders_in(path).next().is_some() && !is_observed
    });
    listings
}

fn most_listings(analysis: &Analysis<'_>, path: &str) -> usize {
    let nodes = analysis.replay.contenders_in(path).map(|(index, node)| {
        let wake_ups =
            analysis.rw_lines.place(index).map_or(0, |place| place.blockers.len() + place.also_watched.len());
        2 + 2 * usize::from(node.deleted.is_some()) + wake_ups
    });
    let mut most: usize = nodes.sum();
    for (client, _) in analysis.attempts.clients_and_paths().filter(|(_, at)| *at == path) {
        for trace in analysis.attempts.of_client_at(client, path) {
            // An attempt that does not wait lists the line before it joins.
            most +=
                1 + analysis.life(client).map_or(0, |life| life.links_between(trace.began, trace.given_up()));
        }
    }
    most
}

#[cfg(test)]
mod tests {
    use crate::event::{AttemptId, Ending, Event, EventKind, LinkState, Observing};
    use crate::history::{HistoryBuilder, LOCK, client};
    use crate::violation::Invariant::M7;
    use std::time::Duration;

    fn woken(notified: &[u32]) -> HistoryBuilder {
        let mut history = HistoryBuilder::new();
        let attempts = [0, 1, 2, 3].map(|client| history.at(100).begin(client));
        for attempt in attempts {
            history.create(attempt);
        }
        let deleted = history.node(attempts[0]);
        history.at(110).grant(attempts[0]).at(200).dropped(attempts[0]).delete(attempts[0]);
        for client in notified {
            history.at(202).record(*client, EventKind::Notified { path: deleted.clone() });
        }
        history.at(203).grant(attempts[1]).end(1_000)
    }

    #[test]
    fn a_deletion_wakes_the_next_waiters_and_its_own_client() {
        woken(&[0, 1]).holds();
        woken(&[0, 1, 2]).holds();
        woken(&[0, 1, 2, 3]).breaks(M7);
    }

    #[test]
    fn an_observer_is_woken_too() {
        let mut history = woken(&[0, 1, 2, 3]);
        let kind = EventKind::Observed(AttemptId(9), Observing::Follows(LOCK.to_owned()));
        history.run.events.insert(4, Event { at: Duration::from_millis(10), client: Some(client(3)), kind });
        history.holds();
    }

    #[test]
    fn without_preparation_only_one_waiter_is_woken() {
        let mut history = woken(&[0, 1, 2]);
        history.run.facts.tolerances.woken = 1;
        history.breaks(M7);
    }

    #[test]
    fn a_client_that_stopped_waiting_may_still_be_notified() {
        let mut history = HistoryBuilder::new();
        let attempts = [0, 1, 2, 3].map(|client| history.at(100).begin(client));
        for attempt in attempts {
            history.create(attempt);
        }
        let deleted = history.node(attempts[0]);
        history.at(110).grant(attempts[0]).at(150).ended(attempts[3], Ending::Cancelled).delete(attempts[3]);
        history.at(200).dropped(attempts[0]).delete(attempts[0]);
        for client in [1, 2, 3] {
            history.at(202).record(client, EventKind::Notified { path: deleted.clone() });
        }
        history.at(203).grant(attempts[1]).end(1_000).holds();
    }

    #[test]
    fn a_client_whose_node_was_deleted_by_another_may_still_be_notified() {
        let woken_by_deleted = |behind_deleted: bool| {
            let mut history = HistoryBuilder::new();
            let attempts = [0, 1, 2, 3].map(|client| history.at(100).begin(client));
            for attempt in attempts {
                history.create(attempt);
            }
            let (deleted, behind) = (history.node(attempts[0]), history.node(attempts[3]));
            history.at(110).grant(attempts[0]);
            if behind_deleted {
                history.at(150).delete_path(&behind, 99);
            }
            history.at(200).dropped(attempts[0]).delete(attempts[0]);
            for client in [1, 2, 3] {
                history.at(202).record(client, EventKind::Notified { path: deleted.clone() });
            }
            history.at(203).grant(attempts[1]).end(1_000)
        };
        woken_by_deleted(true).holds();
        woken_by_deleted(false).breaks(M7);
    }

    #[test]
    fn a_watch_on_the_parent_that_wakes_every_waiter_is_caught() {
        let mut history = HistoryBuilder::new();
        let attempts = [0, 1, 2, 3].map(|client| history.at(100).begin(client));
        for attempt in attempts {
            history.create(attempt);
        }
        history.at(110).grant(attempts[0]).at(200).dropped(attempts[0]).delete(attempts[0]);
        for client in [1, 2, 3] {
            history.at(202).record(client, EventKind::Notified { path: LOCK.to_owned() });
        }
        history.at(203).grant(attempts[1]).end(1_000).breaks(M7);
    }

    #[test]
    fn a_line_is_listed_only_a_few_times_per_attempt() {
        let listed = |times: usize, reconnects: usize| {
            let mut history = HistoryBuilder::new();
            let attempt = history.at(100).begin(0);
            history.create(attempt);
            for _ in 0..reconnects {
                history.link(0, LinkState::Suspended).link(0, LinkState::Connected);
            }
            for _ in 0..times {
                history.record(0, EventKind::Requested { op: 12, path: Some(LOCK.to_owned()) });
            }
            history.at(110).grant(attempt).end(1_000)
        };
        listed(3, 0).holds();
        listed(4, 0).breaks(M7);
        listed(4, 1).holds();
    }
}
