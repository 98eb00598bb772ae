use crate::analysis::Analysis;
use crate::attempt_trace::AttemptTrace;
use crate::event::{EventKind, Grant};
use crate::violation::{Found, Invariant, Violation};
use std::collections::BTreeMap;
use std::time::Duration;

/// **Fences of writers increase** from grant to grant, and a reader that was a writer keeps its fence; other
/// readers have none.
///
/// M4 says so in the order of nodes, this in the order in which locks were granted. A contender that learns
/// of its grant after somebody else took its node away may be told later than the one behind it, whose fence
/// then keeps it out.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    let mut granted: Vec<(Duration, &Grant, &AttemptTrace<'_>)> = Vec::new();
    for trace in analysis.attempts.all() {
        let is_reader_or_writer =
            analysis.node_of(trace).is_some_and(|(index, _)| analysis.rw_lines.place(index).is_some());
        granted.extend(trace.granted.filter(|_| is_reader_or_writer).map(|(at, grant)| (at, grant, trace)));
    }
    granted.sort_by_key(|(at, ..)| *at);
    let writers = writers(analysis);
    let mut highest: BTreeMap<&str, (u64, Duration)> = BTreeMap::new();
    for (at, grant, trace) in granted {
        let what = match (trace.is_exclusive(), grant.fence) {
            (true, Some(fence)) => {
                let before = highest.get(trace.attempt.path.as_str()).copied();
                let before = before.filter(|(before, _)| *before >= fence);
                if before.is_none() {
                    highest.insert(&trace.attempt.path, (fence, at));
                }
                before
                    .filter(|(_, then)| !was_gone(analysis, trace, *then))
                    .map(|(before, _)| format!("a writer's fence is {fence}, an earlier one's was {before}:"))
            }
            (true, None) => Some("a writer has no fence:".to_owned()),
            (false, fence) => {
                let writer = writers.get(&trace.id()).copied().flatten();
                (fence != writer)
                    .then(|| format!("a reader's fence is {fence:?}, as a writer it was {writer:?}:"))
            }
        };
        found.extend(what.map(|what| {
            Violation::new(Invariant::R6, at, what)
                .attempt(trace.id())
                .client(trace.client)
                .path(trace.attempt.path.clone())
        }));
    }
}

/// True when its node was no longer there by then.
fn was_gone(analysis: &Analysis<'_>, trace: &AttemptTrace<'_>, by: Duration) -> bool {
    let gone = analysis.node_of(trace).and_then(|(_, node)| node.gone);
    gone.is_some_and(|gone| gone.when.at <= by)
}

/// The fences that readers had as writers.
fn writers(analysis: &Analysis<'_>) -> BTreeMap<crate::event::AttemptId, Option<u64>> {
    let stepped_down = analysis.events().filter_map(|(_, event)| match &event.kind {
        EventKind::SteppedDown { from, to } => Some((*to, *from)),
        _ => None,
    });
    let fence = |id| analysis.attempts.get(id)?.granted?.1.fence;
    stepped_down.map(|(to, from)| (to, fence(from))).collect()
}

#[cfg(test)]
mod tests {
    use crate::event::FaultKind;
    use crate::history::HistoryBuilder;
    use crate::journal::EndCause::Forced;
    use crate::violation::Invariant::{M4, R6};

    #[test]
    fn fences_of_writers_increase() {
        let fences = |first: u64, second: u64| {
            let mut history = HistoryBuilder::new();
            for (at, fence) in [(100, first), (200, second)] {
                let writer = history.at(at).write(0);
                history.create(writer).at(at + 10).grant_with(writer, fence);
                history.at(at + 20).dropped(writer).delete(writer);
            }
            history.end(1_000)
        };
        fences(5, 7).holds();
        assert_eq!(fences(5, 4).broken(), [M4, R6]);
    }

    #[test]
    fn a_grant_that_was_overtaken_by_the_end_of_its_session_may_be_told_late() {
        let overtaken = |ends: bool| {
            let mut history = HistoryBuilder::new();
            let (first, second) = (history.at(100).write(0), history.write(1));
            history.create(first).create(second).at(200);
            if ends {
                history.fault(0, FaultKind::Expired).end_session(1, Forced);
            }
            history.at(203).grant(second).at(205).grant(first).at(210).dropped(first).dropped(second);
            if !ends {
                history.delete(first);
            }
            history.delete(second).end(1_000)
        };
        assert!(!overtaken(true).broken().contains(&R6), "{:?}", overtaken(true).broken());
        assert!(overtaken(false).broken().contains(&R6));
    }

    #[test]
    fn a_reader_that_was_no_writer_has_no_fence() {
        let mut history = HistoryBuilder::new();
        let reader = history.at(100).read(0);
        history.create(reader).at(110).grant_with(reader, 5).end(300).breaks(R6);
    }
}
