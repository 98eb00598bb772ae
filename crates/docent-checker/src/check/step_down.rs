use crate::analysis::Analysis;
use crate::event::{AttemptId, EventKind};
use crate::journal_replay::NodeLife;
use crate::violation::{Found, Invariant, Violation};
use std::time::Duration;

/// **A writer that steps down keeps its place**: its reader's node has the number of its own, and is made
/// while that is there. So no other writer comes between.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    for (_, event) in analysis.events() {
        if let EventKind::SteppedDown { from, to } = &event.kind {
            found.extend(wrong(analysis, *from, *to, event.at));
        }
    }
}

fn wrong(analysis: &Analysis<'_>, from: AttemptId, to: AttemptId, at: Duration) -> Option<Violation> {
    let traces = analysis.attempts.get(from).zip(analysis.attempts.get(to));
    let nodes = traces.and_then(|(from, to)| Some((analysis.node_of(from)?.1, analysis.node_of(to)?.1)));
    let what = match nodes {
        Some((writer, reader)) => left(writer, reader)?,
        None => "a writer stepped down without a node:".to_owned(),
    };
    let violation = Violation::new(Invariant::R4, at, what).attempt(from).attempt(to);
    Some(match traces {
        Some((from, _)) => violation.client(from.client).path(from.attempt.path.clone()),
        None => violation,
    })
}

/// Violation in the way that the place was left.
fn left(writer: &NodeLife, reader: &NodeLife) -> Option<String> {
    let number = |node: &NodeLife| node.contender.as_ref().map(|contender| contender.number);
    if number(writer) != number(reader) {
        return Some(format!(
            "a writer with the number {:?} stepped down to {:?}:",
            number(writer),
            number(reader)
        ));
    }
    writer
        .gone
        .is_some_and(|gone| gone.when.zxid < reader.created.zxid)
        .then(|| "a writer's place was empty while it stepped down:".to_owned())
}

#[cfg(test)]
mod tests {
    use crate::event::{AttemptId, EventKind};
    use crate::history::HistoryBuilder;
    use crate::violation::Invariant::R4;

    fn writing() -> (HistoryBuilder, AttemptId) {
        let mut history = HistoryBuilder::new();
        let writer = history.at(100).write(0);
        history.create(writer).at(110).grant(writer).at(200).releasing(writer);
        (history, writer)
    }

    fn end(history: &mut HistoryBuilder, writer: AttemptId, reader: AttemptId) -> HistoryBuilder {
        let fence = history.fence(writer);
        history
            .at(205)
            .grant_with(reader, fence)
            .tell(0, EventKind::SteppedDown { from: writer, to: reader });
        history.at(206).end(1_000)
    }

    #[test]
    fn a_reader_in_the_writers_place_is_right() {
        let (mut history, writer) = writing();
        let reader = history.read(0);
        history.at(203).create_in_place_of(writer, reader).at(204).delete(writer);
        end(&mut history, writer, reader).holds();
    }

    #[test]
    fn who_leaves_first_is_caught() {
        let (mut history, writer) = writing();
        let reader = history.read(0);
        history.at(203).delete(writer).at(204).create_in_place_of(writer, reader);
        end(&mut history, writer, reader).breaks(R4);
    }

    #[test]
    fn who_takes_another_place_is_caught() {
        let (mut history, writer) = writing();
        let reader = history.read(0);
        history.at(203).create(reader).at(204).delete(writer);
        end(&mut history, writer, reader).breaks(R4);
    }
}
