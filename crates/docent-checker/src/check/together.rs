use crate::analysis::Analysis;
use crate::attempt_trace::AttemptTrace;
use crate::event::Role;
use crate::journal_replay::Moment;
use crate::violation::{Found, Invariant, Violation};

/// **Resources of one group** are held as a whole or not at all: there is a transaction at which all of their
/// nodes existed, each in its turn. The turn of a semaphore precedes the group's other grants, and is not
/// checked.
///
/// M6 checks the nodes that a failed acquire created, and M8 the time for which an acquire waits while it
/// holds some of its resources.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    for group in analysis.attempts.groups() {
        let traces = group.iter().filter_map(|id| analysis.attempts.get(*id));
        let traces: Vec<&AttemptTrace<'_>> =
            traces.filter(|trace| trace.attempt.role != Role::Turn).collect();
        let Some((at, _)) = traces.iter().find_map(|trace| trace.granted) else { continue };
        let Some(what) = wrong(analysis, &traces) else { continue };
        let violation = Violation::new(Invariant::G1, at, what);
        found.push(traces.into_iter().fold(violation, |violation, trace| {
            violation.attempt(trace.id()).client(trace.client).path(trace.attempt.path.clone())
        }));
    }
}

fn wrong(analysis: &Analysis<'_>, traces: &[&AttemptTrace<'_>]) -> Option<String> {
    let (mut last_created, mut first_deleted): (Option<Moment>, Option<Moment>) = (None, None);
    for trace in traces {
        if trace.granted.is_none() {
            return Some("only a part of a group was granted:".to_owned());
        }
        // Other invariants report a node that does not exist or never came to its turn.
        let (index, node) = analysis.node_of(trace)?;
        let created = match trace.attempt.role {
            Role::Exclusive => node.first?,
            Role::Shared => analysis.rw_lines.place(index)?.admitted?,
            _ => node.created,
        };
        last_created = last_created.max(Some(created));
        first_deleted = [first_deleted, node.deleted.map(|deleted| deleted.when)].into_iter().flatten().min();
    }
    let never =
        first_deleted.zip(last_created).is_some_and(|(deleted, created)| deleted.zxid <= created.zxid);
    never.then(|| "granted together, but never held at the same time:".to_owned())
}

#[cfg(test)]
mod tests {
    use crate::event::{AttemptId, EventKind};
    use crate::history::HistoryBuilder;
    use crate::violation::Invariant::G1;

    fn both() -> (HistoryBuilder, [AttemptId; 2]) {
        let mut history = HistoryBuilder::new();
        let both = ["/one", "/two"].map(|path| history.at(2_100).begin_at(0, path));
        history.record(0, EventKind::Together(both.to_vec())).create(both[0]);
        (history, both)
    }

    #[test]
    fn all_locks_are_granted_together() {
        let (mut history, both) = both();
        history.at(2_200).create(both[1]).at(2_210).grant(both[0]).grant(both[1]);
        history
            .at(2_300)
            .dropped(both[0])
            .dropped(both[1])
            .delete(both[0])
            .delete(both[1])
            .end(4_000)
            .holds();
    }

    #[test]
    fn a_grant_of_only_some_locks_is_caught() {
        let (mut history, both) = both();
        history.at(2_210).grant(both[0]).end(2_300).breaks(G1);
    }

    #[test]
    fn a_lock_that_was_lost_before_the_other_was_granted_is_caught() {
        let (mut history, both) = both();
        let node = history.node(both[0]);
        history.at(2_150).delete_path(&node, 9).at(2_200).create(both[1]);
        history.at(2_210).grant(both[0]).grant(both[1]).lost(both[0]).lost(both[1]).end(2_300).breaks(G1);
    }

    #[test]
    fn a_client_that_waits_for_one_lock_does_not_starve_for_the_other() {
        let (mut history, both) = both();
        let other = history.begin_at(1, "/two");
        history.create(other).at(2_110).grant(other).at(2_200).world(EventKind::Calm).create(both[1]);
        history.at(30_000).dropped(other).delete(other).at(30_010).grant(both[0]).grant(both[1]);
        history.end(31_000).holds();
    }

    #[test]
    fn all_locks_are_lost_with_one() {
        let (mut history, both) = both();
        history.at(2_200).create(both[1]).at(12_210).grant(both[0]).grant(both[1]);
        let node = history.node(both[0]);
        history.at(20_000).delete_path(&node, 9).at(20_002).lost(both[0]).lost(both[1]);
        history.at(20_100).dropped(both[0]).dropped(both[1]).delete(both[1]).end(30_000).holds();
    }
}
