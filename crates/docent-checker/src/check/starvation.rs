use super::writer::{Passed, has_it, passed, violation};
use crate::analysis::Analysis;
use crate::violation::{Found, Invariant};

/// **Writers are not starved**: a reader whose place is behind that of a waiting writer is not granted before
/// that writer's node is deleted.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    for Passed { trace, writer } in passed(analysis) {
        let Some((at, _)) = trace.granted else { continue };
        let holds = |id: &_| analysis.attempts.get(*id).is_some_and(|other| has_it(other, at));
        if !analysis.holders(writer).iter().any(holds) {
            let what = "a reader was granted before a writer that waits ahead of it:";
            found.push(violation(Invariant::R3, analysis, &Passed { trace, writer }, what));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::event::{AttemptId, Ending};
    use crate::history::HistoryBuilder;
    use crate::violation::Invariant::R3;

    /// One contender reads, one waits to write, another one waits to read.
    fn waiting() -> (HistoryBuilder, [AttemptId; 3]) {
        let mut history = HistoryBuilder::new();
        let all = [history.at(100).read(0), history.write(1), history.read(2)];
        for attempt in all {
            history.create(attempt);
        }
        history.at(110).grant(all[0]);
        (history, all)
    }

    #[test]
    fn a_reader_that_passes_a_writer_is_caught() {
        let (mut history, [_, _, late]) = waiting();
        history.at(120).grant(late).end(300).breaks(R3);
    }

    #[test]
    fn a_writer_that_left_blocks_no_reader() {
        let (mut history, [_, writer, late]) = waiting();
        history.at(200).ended(writer, Ending::Cancelled).delete(writer).at(203).grant(late).end(300).holds();
    }
}
