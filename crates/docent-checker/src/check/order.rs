use crate::analysis::Analysis;
use crate::attempt_trace::AttemptTrace;
use crate::event::{ClientId, EventKind, Grant, Turn};
use crate::journal_replay::{NodeLife, Remover};
use crate::run::Tolerances;
use crate::violation::{Found, Invariant, Violation};
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// **First come, first served**: grants follow the order of the line. A contender keeps its place until its
/// attempt ends: its client does not give the place up before.
///
/// A ticket that tasks of a client share is passed on at most as often as its turns permit.
///
/// Exceptions:
///
/// - A contender that loses its session, or whose node a third party deletes, takes a new place at the end of
///   the line.
/// - An acquire of several resources restarts when it loses one of them, and may then give up its places for
///   the others.
/// - A contender that could not learn of its place in time because of a fault gives the place up and tries
///   again.
/// - A candidate that is first may lose its lease while it waits for a takeover delay.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    overtaken(analysis, found);
    passed_on_too_often(analysis, found);
    places_given_up(analysis, found);
}

/// Finds a grant that follows the grant of a later contender, although the earlier one's node existed all the
/// time.
fn overtaken(analysis: &Analysis<'_>, found: &mut Found) {
    let exclusive = analysis.attempts.all().filter(|trace| trace.is_exclusive());
    let granted = exclusive.filter_map(|trace| Some((trace.granted?.0, trace, analysis.node_of(trace)?.1)));
    let mut granted: Vec<_> = granted.collect();
    granted.sort_by_key(|(at, ..)| *at);
    // For each path, the grant so far whose node was created last.
    let mut latest: BTreeMap<&str, (i64, Duration, &AttemptTrace<'_>)> = BTreeMap::new();
    for (at, trace, node) in granted {
        let path = trace.attempt.path.as_str();
        if let Some((_, before, other)) = latest.get(path).filter(|(czxid, ..)| *czxid > node.created.zxid)
            && node.is_alive_at(*before)
        {
            let what = "overtaken in the line by the second attempt:";
            found.push(violation(trace, at, what, node).attempt(other.id()).client(other.client));
        }
        if latest.get(path).is_none_or(|(czxid, ..)| *czxid < node.created.zxid) {
            latest.insert(path, (node.created.zxid, at, trace));
        }
    }
}

fn passed_on_too_often(analysis: &Analysis<'_>, found: &mut Found) {
    for trace in analysis.attempts.all() {
        if let Some((at, Grant { turn: Some(Turn { number, last }), .. })) = trace.granted
            && number > last
            && let Some((_, node)) = analysis.node_of(trace)
        {
            found.push(violation(trace, at, "its ticket was passed on too often:", node));
        }
    }
}

fn places_given_up(analysis: &Analysis<'_>, found: &mut Found) {
    let Tolerances { grain, operation, round_trip, .. } = *analysis.tolerances();
    let sent = creates_sent(analysis);
    for (index, node) in analysis.replay.contenders() {
        let Some(deleted) = node.deleted.filter(|deleted| deleted.by == Remover::Session(node.owner)) else {
            continue;
        };
        let Some(client) = analysis.client_of(node.owner) else { continue };
        // The contender may have stopped waiting before the server created its node.
        let created = sent.get(&(client, without_number(&node.path))).copied().unwrap_or(node.created.at);
        let until = deleted.when.at + grain;
        let closing =
            analysis.life(client).and_then(|life| life.closing).is_some_and(|closing| closing <= until);
        // No attempt waits in the place of a writer that downgrades.
        let taken_over = analysis.rw_lines.place(index).is_some_and(|place| place.taken_over);
        // A candidate that becomes first may lose its lease while it waits for the takeover delay, and give
        // its place up for that reason.
        let delayed = node.first.is_some() && !analysis.elections.delay(node.folder()).is_zero();
        // A contender that does not learn of its place in time because of a fault takes another one.
        // Candidates may have had less time.
        let rough = analysis.life(client).is_some_and(|life| !life.apart.spare(created, deleted.when.at));
        let failed = rough && analysis.elections.delays().contains_key(node.folder());
        // The server created the node so late that the client had searched for it without success.
        let late = rough && node.created.at > created + round_trip + grain;
        if closing || taken_over || delayed || failed || late || !analysis.holders(index).is_empty() {
            continue;
        }
        let may = |trace: &AttemptTrace<'_>| {
            analysis.attempts.is_grouped(trace.id())
                || trace.waited_until().is_some_and(|ended| ended <= until)
                || rough && trace.began + operation <= until
        };
        let since = created.saturating_sub(grain);
        let begun = analysis.attempts.waiting(client, node.folder(), since, created + grain);
        let mut waiting = begun.filter(|trace| trace.waited_until().is_none_or(|ended| ended >= since));
        let Some(first) = waiting.next() else { continue };
        if !may(first) && !waiting.any(may) {
            let what = "its client gave up its place while it waited:";
            found.push(violation(first, deleted.when.at, what, node));
        }
    }
}

/// Times at which each client requested the nodes whose numbers the server chose.
fn creates_sent<'a>(analysis: &Analysis<'a>) -> HashMap<(ClientId, &'a str), Duration> {
    let creates = analysis.events().filter_map(|(_, event)| match &event.kind {
        EventKind::Requested { path: Some(path), .. } => Some(((event.client?, path.as_str()), event.at)),
        _ => None,
    });
    creates.collect()
}

/// The path of the request that created a sequential node.
fn without_number(path: &str) -> &str {
    const DIGITS: usize = 10;
    path.len().checked_sub(DIGITS).and_then(|end| path.get(..end)).unwrap_or(path)
}

fn violation(trace: &AttemptTrace<'_>, at: Duration, what: &str, node: &NodeLife) -> Violation {
    Violation::new(Invariant::M5, at, what)
        .attempt(trace.id())
        .client(trace.client)
        .path(trace.attempt.path.clone())
        .path(node.path.clone())
}

#[cfg(test)]
mod tests {
    use crate::event::{Ending, Event, EventKind, FaultKind};
    use crate::history::{ElectionEvents, HistoryBuilder, client};
    use crate::violation::Invariant::M5;
    use std::time::Duration;

    #[test]
    fn overtaking_in_the_line_is_caught() {
        let mut history = HistoryBuilder::new();
        let (first, second) = (history.at(100).begin(0), history.begin(1));
        history.create(first).create(second).at(110).grant(second).at(120).dropped(second).delete(second);
        history.at(130).grant(first).end(1_000).breaks_also(M5);
    }

    #[test]
    fn a_waiter_keeps_its_place() {
        let mut history = HistoryBuilder::new();
        let (first, second) = (history.at(100).begin(0), history.begin(1));
        history.create(first).create(second).at(110).grant(first).at(150).delete(second).create(second);
        history.at(200).dropped(first).delete(first).at(210).grant(second).end(1_000).breaks(M5);
    }

    #[test]
    fn a_candidate_that_created_its_node_too_late_retries() {
        let given_up = |well: bool| {
            let mut history = HistoryBuilder::new();
            let (first, second) = (history.at(100).campaign(0), history.campaign(1));
            history.create(first).at(110).grant(first);
            if !well {
                history.fault(1, FaultKind::Reset { applied: true });
            }
            history.create(second).at(150).delete(second).at(600).create(second);
            history.end(1_000)
        };
        given_up(false).holds();
        given_up(true).breaks(M5);
    }

    #[test]
    fn a_cancelled_waiter_gives_up_its_place() {
        let mut history = HistoryBuilder::new();
        let (first, second) = (history.at(100).begin(0), history.begin(1));
        history.create(first).create(second).at(110).grant(first).at(150).ended(second, Ending::Cancelled);
        history.at(151).delete(second).end(1_000).holds();
    }

    #[test]
    fn a_node_that_is_created_late_is_not_taken_for_that_of_the_next_attempt() {
        let mut history = HistoryBuilder::new();
        let cancelled = history.at(100).begin(0);
        history.at(102).ended(cancelled, Ending::Cancelled);
        let next = history.at(105).begin(0);
        history.at(120).create(cancelled).create(next).at(122).delete(cancelled);
        history.at(130).grant(next).at(140).dropped(next).at(141).delete(next).end(1_000);
        history.breaks(M5);
        let (late, sent) = (history.node(cancelled), Duration::from_millis(100));
        let path = Some(late[..late.len() - 10].to_owned());
        let begun = history.run.events.iter().position(|event| matches!(event.kind, EventKind::Began(_)));
        let kind = EventKind::Requested { op: 15, path };
        history.run.events.insert(begun.unwrap() + 1, Event { at: sent, client: Some(client(0)), kind });
        history.holds();
    }

    #[test]
    fn a_waiter_whose_node_is_deleted_creates_another() {
        let mut history = HistoryBuilder::new();
        let attempts = [0, 1, 2].map(|client| history.at(100).begin(client));
        for attempt in attempts {
            history.create(attempt);
        }
        let own = history.node(attempts[1]);
        history.at(110).grant(attempts[0]).at(150).delete_path(&own, 7).at(160).create(attempts[1]);
        history.at(200).dropped(attempts[0]).delete(attempts[0]).at(202).grant(attempts[2]);
        history.at(210).dropped(attempts[2]).delete(attempts[2]).at(220).grant(attempts[1]);
        history.end(1_000).holds();
    }
}
