use crate::analysis::Analysis;
use crate::contender::Contender;
use crate::event::{ClientId, EventKind};
use crate::journal_replay::NodeLife;
use crate::violation::{Found, Invariant, Violation};
use std::collections::{BTreeSet, HashMap};

/// **Wake-ups of readers and writers**: a contender that leaves wakes only
///
/// - contenders whose nearest obstacle it was;
/// - writers whose nearest obstacle is just behind it, because writers watch one further ahead;
/// - if it was a writer, readers behind it, because readers may watch all writers ahead.
///
/// A reader is an obstacle for writers only. A reader that takes over the place of its writer is an obstacle
/// for all that wait for that writer. The client that owned the node does not count. A client that stopped
/// waiting may still receive an event of the node that it watched. Assumed: events are recorded.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    let waited = waited(analysis);
    for (_, event) in analysis.events() {
        let (EventKind::Notified { path }, Some(client)) = (&event.kind, event.client) else { continue };
        let at = event.at + analysis.tolerances().grain;
        let Some(index) = analysis.replay.node_at(path, at) else { continue };
        let node = &analysis.replay.nodes()[index];
        let is_reader_or_writer = node.contender.as_ref().is_some_and(Contender::is_reader_or_writer);
        let is_deleted = node.deleted.is_some_and(|deleted| deleted.when.at <= at);
        if is_reader_or_writer
            && is_deleted
            && analysis.rw_lines.place(index).is_some()
            && !waited.contains(&(client, index))
        {
            let what = "a client was woken by a contender that did not block it:";
            found.push(
                Violation::new(Invariant::R5, event.at, what).client(client).path(node.folder()).path(path),
            );
        }
    }
}

/// Clients that waited for nodes, or owned them, each with the node.
fn waited(analysis: &Analysis<'_>) -> BTreeSet<(ClientId, usize)> {
    let mut clients: HashMap<i64, Option<ClientId>> = HashMap::new();
    let mut waited = BTreeSet::new();
    let mut places: HashMap<(&str, i32), Vec<usize>> = HashMap::new();
    for (index, node) in analysis.replay.contenders() {
        places.entry(folder_and_number(node)).or_default().push(index);
    }
    let in_place_of =
        |index: usize| places.get(&folder_and_number(&analysis.replay.nodes()[index])).into_iter().flatten();
    for (index, node) in analysis.replay.contenders() {
        let Some(place) = analysis.rw_lines.place(index) else { continue };
        let client = *clients.entry(node.owner).or_insert_with(|| analysis.client_of(node.owner));
        waited.extend(client.into_iter().flat_map(|client| {
            let ahead = place.blockers.iter().chain(&place.also_watched).copied().chain([index]);
            ahead.flat_map(in_place_of).map(move |node| (client, *node))
        }));
    }
    waited
}

/// The line of a node, and its number in the line.
fn folder_and_number(node: &NodeLife) -> (&str, i32) {
    (node.folder(), node.contender.as_ref().map_or(0, |contender| contender.number))
}

#[cfg(test)]
mod tests {
    use crate::event::{Ending, EventKind};
    use crate::history::HistoryBuilder;
    use crate::violation::Invariant::R5;

    /// A writer leaves with others behind it, some of which are notified.
    fn woken(behind: [bool; 3], notified: &[u32]) -> HistoryBuilder {
        let mut history = HistoryBuilder::new();
        let writer = history.at(100).write(0);
        history.create(writer);
        for (client, writes) in (1..).zip(behind) {
            let attempt = if writes { history.write(client) } else { history.read(client) };
            history.create(attempt);
        }
        let deleted = history.node(writer);
        history.at(110).grant(writer).at(200).dropped(writer).delete(writer);
        for client in notified {
            history.at(202).record(*client, EventKind::Notified { path: deleted.clone() });
        }
        history.end(300)
    }

    #[test]
    fn a_writer_wakes_the_readers_behind_it() {
        woken([false, false, false], &[0, 1, 2, 3]).holds();
        woken([false, false, true], &[0, 1, 2]).holds();
        woken([false, false, true], &[3]).breaks(R5);
    }

    #[test]
    fn a_writer_wakes_the_next_writer_and_readers_that_watch_ahead() {
        woken([true, false, true], &[1, 2]).holds();
        woken([true, false, true], &[1, 3]).breaks(R5);
        woken([true, true, false], &[1, 2]).holds();
        woken([true, true, true], &[3]).breaks(R5);
        woken([false, true, true], &[3]).breaks(R5);
    }

    #[test]
    fn a_reader_wakes_the_next_writer_if_at_most_one_other_reader_remains() {
        let woken = |number: usize| {
            let mut history = HistoryBuilder::new();
            let readers = [history.at(100).read(0), history.read(1), history.read(3)];
            let writer = history.write(2);
            for reader in readers {
                history.create(reader).grant(reader);
            }
            history.create(writer).at(110);
            let leaves = readers[number];
            let deleted = history.node(leaves);
            history
                .at(200)
                .dropped(leaves)
                .delete(leaves)
                .at(202)
                .record(2, EventKind::Notified { path: deleted });
            history.end(300)
        };
        woken(2).holds();
        woken(1).holds();
        woken(0).breaks(R5);
    }

    #[test]
    fn a_waiter_behind_a_writer_may_be_woken_by_the_reader_of_its_downgrade() {
        let mut history = HistoryBuilder::new();
        let (writer, next) = (history.at(100).write(0), history.write(1));
        history.create(writer).create(next).at(110).grant(writer);
        let reader = history.at(150).releasing(writer).read(0);
        history.create_in_place_of(writer, reader).at(199).ended(reader, Ending::Cancelled);
        history.at(200).delete(reader).delete(writer);
        let deleted = history.node(reader);
        history.clone().at(202).record(1, EventKind::Notified { path: deleted.clone() }).end(300).holds();
        history.at(202).record(2, EventKind::Notified { path: deleted }).end(300).breaks(R5);
    }
}
