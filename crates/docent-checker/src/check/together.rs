use crate::analysis::Analysis;
use crate::attempt_trace::AttemptTrace;
use crate::event::Role;
use crate::journal_replay::Moment;
use crate::violation::{Found, Invariant, Violation};

/// **Things that go together** are held as a whole or not at all: there is a transaction at which all of
/// their nodes were there, each in its turn. The turn of a semaphore goes before, and is not looked at.
///
/// Nodes that an acquire took before it failed are a matter of orphans (M6), and its waits for others while
/// it has them of liveness (M8).
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
    let (mut last_came, mut first_went): (Option<Moment>, Option<Moment>) = (None, None);
    for trace in traces {
        if trace.granted.is_none() {
            return Some("a part of what goes together was granted:".to_owned());
        }
        // That there is no such node, or that it never came to its turn, is for others to say.
        let (index, node) = analysis.node_of(trace)?;
        let came = match trace.attempt.role {
            Role::Exclusive => node.first?,
            Role::Shared => analysis.rw_lines.place(index)?.admitted?,
            _ => node.created,
        };
        last_came = last_came.max(Some(came));
        first_went = [first_went, node.gone.map(|gone| gone.when)].into_iter().flatten().min();
    }
    let never = first_went.zip(last_came).is_some_and(|(went, came)| went.zxid <= came.zxid);
    never.then(|| "granted together and never held at the same time:".to_owned())
}

#[cfg(test)]
mod tests {
    use crate::event::{AttemptId, EventKind};
    use crate::history::HistoryBuilder;
    use crate::violation::Invariant::G1;

    fn both() -> (HistoryBuilder, [AttemptId; 2]) {
        let mut history = HistoryBuilder::new();
        let both = ["/one", "/two"].map(|path| history.at(2_100).begin_at(0, path));
        history.tell(0, EventKind::Together(both.to_vec())).create(both[0]);
        (history, both)
    }

    #[test]
    fn all_of_them_at_once() {
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
    fn a_part_of_them_is_caught() {
        let (mut history, both) = both();
        history.at(2_210).grant(both[0]).end(2_300).breaks(G1);
    }

    #[test]
    fn one_that_was_lost_before_the_other_came_is_caught() {
        let (mut history, both) = both();
        let node = history.node(both[0]);
        history.at(2_150).delete_path(&node, 9).at(2_200).create(both[1]);
        history.at(2_210).grant(both[0]).grant(both[1]).lost(both[0]).lost(both[1]).end(2_300).breaks(G1);
    }

    #[test]
    fn who_waits_for_one_of_them_does_not_starve_for_the_other() {
        let (mut history, both) = both();
        let other = history.begin_at(1, "/two");
        history.create(other).at(2_110).grant(other).at(2_200).world(EventKind::Calm).create(both[1]);
        history.at(30_000).dropped(other).delete(other).at(30_010).grant(both[0]).grant(both[1]);
        history.end(31_000).holds();
    }

    #[test]
    fn all_are_lost_with_one() {
        let (mut history, both) = both();
        history.at(2_200).create(both[1]).at(12_210).grant(both[0]).grant(both[1]);
        let node = history.node(both[0]);
        history.at(20_000).delete_path(&node, 9).at(20_002).lost(both[0]).lost(both[1]);
        history.at(20_100).dropped(both[0]).dropped(both[1]).delete(both[1]).end(30_000).holds();
    }
}
