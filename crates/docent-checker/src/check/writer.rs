use super::real_time::{judge, overlapping};
use crate::analysis::Analysis;
use crate::attempt_trace::AttemptTrace;
use crate::violation::{Found, Invariant, Violation};

/// **A writer excludes readers**, in the order of transactions and in real time.
///
/// For each reader there is a transaction at which its node existed and no writer was ahead of it. A reader
/// that was granted while a writer ahead held is reported here; one that passed a waiting writer is reported
/// by R3. In real time a writer and a reader may overlap like two writers: see M3, which also reports two
/// writers.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    for Passed { trace, writer } in passed(analysis) {
        let Some((at, _)) = trace.granted else { continue };
        let holds = |id: &&_| analysis.attempts.get(**id).is_some_and(|other| has_it(other, at));
        if let Some(holder) = analysis.holders(writer).iter().find(holds) {
            let what = "a reader was granted while the writer ahead of it held:";
            found.push(violation(Invariant::R1, analysis, &Passed { trace, writer }, what).attempt(*holder));
        }
    }
    let excluded = |one: &AttemptTrace<'_>, other: &AttemptTrace<'_>| {
        one.is_shared() && other.is_exclusive() || one.is_exclusive() && other.is_shared()
    };
    for overlap in overlapping(analysis, excluded) {
        found.extend(judge(analysis, Invariant::R1, &overlap));
    }
}

/// Returns true if the attempt was granted by the time `at`.
pub(super) fn has_it(trace: &AttemptTrace<'_>, at: std::time::Duration) -> bool {
    trace.granted.is_some_and(|(granted, _)| granted <= at)
}

/// A reader that was granted while a writer ahead of it was in the line.
pub(super) struct Passed<'s, 'a> {
    pub(super) trace: &'s AttemptTrace<'a>,
    pub(super) writer: usize,
}

pub(super) fn passed<'s, 'a>(analysis: &'s Analysis<'a>) -> impl Iterator<Item = Passed<'s, 'a>> {
    analysis.attempts.all().filter(|trace| trace.is_shared()).filter_map(|trace| {
        let (at, _) = trace.granted?;
        let at = at + analysis.tolerances().grain;
        let (index, _) = analysis.node_of(trace)?;
        let place = analysis.rw_lines.place(index)?;
        if place.admitted.is_some_and(|admitted| admitted.at <= at) {
            return None;
        }
        let then = |writer: &&usize| analysis.replay.nodes()[**writer].is_alive_at(at);
        let writer = place.blockers.iter().find(then).or(place.blockers.last())?;
        Some(Passed { trace, writer: *writer })
    })
}

pub(super) fn violation(
    invariant: Invariant,
    analysis: &Analysis<'_>,
    passed: &Passed<'_, '_>,
    what: &str,
) -> Violation {
    let Passed { trace, writer } = passed;
    let writer = &analysis.replay.nodes()[*writer];
    let at = trace.granted.map_or(trace.began, |(at, _)| at);
    let violation = Violation::new(invariant, at, what)
        .attempt(trace.id())
        .client(trace.client)
        .path(trace.attempt.path.clone())
        .path(writer.path.clone());
    analysis.client_of(writer.owner).into_iter().fold(violation, Violation::client)
}

#[cfg(test)]
mod tests {
    use crate::event::{AttemptId, FaultKind};
    use crate::history::HistoryBuilder;
    use crate::journal::EndCause::Expired;
    use crate::violation::Invariant::R1;

    fn writer_ahead() -> (HistoryBuilder, AttemptId, AttemptId) {
        let mut history = HistoryBuilder::new();
        let (writer, reader) = (history.at(100).write(0), history.read(1));
        history.create(writer).create(reader).at(110).grant(writer);
        (history, writer, reader)
    }

    #[test]
    fn a_reader_comes_after_the_writer() {
        let (mut history, writer, reader) = writer_ahead();
        history.at(200).releasing(writer).at(202).delete(writer).at(203).grant(reader).end(1_000).holds();
    }

    #[test]
    fn a_reader_beside_a_writer_is_caught() {
        let (mut history, writer, reader) = writer_ahead();
        history.at(150).grant(reader).at(200).dropped(reader).delete(reader);
        history.at(210).dropped(writer).delete(writer).end(1_000).breaks(R1);
    }

    #[test]
    fn a_reader_that_continues_beside_a_writer_is_caught() {
        let mut history = HistoryBuilder::new();
        let (reader, writer) = (history.at(100).read(0), history.write(1));
        history.create(reader).create(writer).at(110).grant(reader);
        history
            .at(200)
            .delete(reader)
            .at(205)
            .grant(writer)
            .at(300)
            .dropped(reader)
            .end(1_000)
            .breaks_also(R1);
    }

    #[test]
    fn a_paused_reader_is_excused() {
        let mut history = HistoryBuilder::new();
        let (reader, writer) = (history.at(100).read(0), history.write(1));
        history.create(reader).create(writer).at(110).grant(reader).at(200).fault(0, FaultKind::Frozen);
        history.at(6_510).end_session(1, Expired).at(6_520).grant(writer);
        history.at(8_000).heal(0, FaultKind::Frozen).at(8_050).lost(reader).end(9_000).holds();
    }

    #[test]
    fn readers_are_beside_each_other() {
        let mut history = HistoryBuilder::new();
        let (one, other) = (history.at(100).read(0), history.read(1));
        history.create(one).create(other).at(110).grant(one).grant(other);
        history.at(200).dropped(one).dropped(other).delete(one).delete(other).end(1_000).holds();
    }
}
