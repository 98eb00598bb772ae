use crate::analysis::Analysis;
use crate::event::{AttemptId, EventKind};
use crate::journal_replay::NodeLife;
use crate::violation::{Found, Invariant, Violation};
use std::time::Duration;

/// **A writer that downgrades keeps its place**: its reader's node has the writer's number, and is created
/// while the writer's node exists. So no other writer can slip in between.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    for (_, event) in analysis.events() {
        if let EventKind::Downgraded { from, to } = &event.kind {
            found.extend(wrong(analysis, *from, *to, event.at));
        }
    }
}

fn wrong(analysis: &Analysis<'_>, from: AttemptId, to: AttemptId, at: Duration) -> Option<Violation> {
    let traces = analysis.attempts.get(from).zip(analysis.attempts.get(to));
    let nodes = traces.and_then(|(from, to)| Some((analysis.node_of(from)?.1, analysis.node_of(to)?.1)));
    let what = match nodes {
        Some((writer, reader)) => wrong_order(writer, reader)?,
        None => "a writer downgraded without a node:".to_owned(),
    };
    let violation = Violation::new(Invariant::R4, at, what).attempt(from).attempt(to);
    Some(match traces {
        Some((from, _)) => violation.client(from.client).path(from.attempt.path.clone()),
        None => violation,
    })
}

/// Finds a writer that did not keep its place.
fn wrong_order(writer: &NodeLife, reader: &NodeLife) -> Option<String> {
    let number = |node: &NodeLife| node.contender.as_ref().map(|contender| contender.number);
    if number(writer) != number(reader) {
        return Some(format!(
            "a writer with the number {:?} downgraded to {:?}:",
            number(writer),
            number(reader)
        ));
    }
    writer
        .deleted
        .is_some_and(|deleted| deleted.when.zxid < reader.created.zxid)
        .then(|| "a writer's place was empty while it downgraded:".to_owned())
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
            .record(0, EventKind::Downgraded { from: writer, to: reader });
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
    fn a_writer_that_deletes_its_node_first_is_caught() {
        let (mut history, writer) = writing();
        let reader = history.read(0);
        history.at(203).delete(writer).at(204).create_in_place_of(writer, reader);
        end(&mut history, writer, reader).breaks(R4);
    }

    #[test]
    fn a_reader_at_another_position_is_caught() {
        let (mut history, writer) = writing();
        let reader = history.read(0);
        history.at(203).create(reader).at(204).delete(writer);
        end(&mut history, writer, reader).breaks(R4);
    }
}
