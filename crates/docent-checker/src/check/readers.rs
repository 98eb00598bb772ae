use crate::analysis::Analysis;
use crate::attempt_trace::AttemptTrace;
use crate::contender::Contender;
use crate::event::Ending;
use crate::violation::{Found, Invariant, Violation};
use std::time::Duration;

/// **Readers do not hold back readers**: a reader waits for writers only.
///
/// Once no writer is ahead of a reader and its link is healthy, it is granted within the time for a
/// notification and two round trips, however many others read. A reader that does not wait ends with `Busy`
/// only if a writer was in the line during its attempt, or shortly before. Readers that are acquired together
/// with other resources are not checked.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    for trace in analysis.attempts.all().filter(|trace| trace.is_shared()) {
        if analysis.attempts.is_grouped(trace.id()) {
            continue;
        }
        found.extend([blocked(analysis, trace), refused(analysis, trace)].into_iter().flatten().map(
            |(at, what)| {
                Violation::new(Invariant::R2, at, what)
                    .attempt(trace.id())
                    .client(trace.client)
                    .path(trace.attempt.path.clone())
            },
        ));
    }
}

fn blocked(analysis: &Analysis<'_>, trace: &AttemptTrace<'_>) -> Option<(Duration, String)> {
    let (at, _) = trace.granted?;
    let (index, node) = analysis.node_of(trace)?;
    let admitted = analysis.rw_lines.place(index)?.admitted?;
    let tolerances = analysis.tolerances();
    let from = admitted.at.max(node.created.at).max(trace.began);
    let due = from + tolerances.notification + tolerances.round_trip * 2 + tolerances.scheduling;
    let well = analysis.life(trace.client)?.apart.spare(from.saturating_sub(tolerances.reconnect), due);
    (at > due && well).then(|| (at, format!("a reader waited {:?} without a writer ahead of it:", at - from)))
}

fn refused(analysis: &Analysis<'_>, trace: &AttemptTrace<'_>) -> Option<(Duration, String)> {
    let (at, _) = trace.ended.filter(|(_, ending)| **ending == Ending::Busy)?;
    let tolerances = analysis.tolerances();
    let well = analysis.life(trace.client)?.apart.spare(trace.began.saturating_sub(tolerances.reconnect), at);
    let since = trace.began.saturating_sub(tolerances.notification);
    let mut writers = analysis.replay.contenders_in(&trace.attempt.path).filter(|(_, node)| {
        node.contender.as_ref().is_some_and(Contender::is_writer)
            && node.created.at <= at + tolerances.grain
            && node.deleted.is_none_or(|deleted| deleted.when.at >= since)
    });
    (well && writers.next().is_none())
        .then(|| (at, "a reader ended as busy, but there was no writer:".to_owned()))
}

#[cfg(test)]
mod tests {
    use crate::event::Ending;
    use crate::history::HistoryBuilder;
    use crate::violation::Invariant::R2;

    #[test]
    fn a_reader_that_waits_for_readers_is_caught() {
        let second = |granted_at: u64| {
            let mut history = HistoryBuilder::new();
            let (one, other) = (history.at(2_100).read(0), history.read(1));
            history.create(one).create(other).at(2_110).grant(one);
            history
                .at(granted_at)
                .grant(other)
                .at(4_000)
                .dropped(one)
                .dropped(other)
                .delete(one)
                .delete(other);
            history.end(5_000)
        };
        second(2_300).holds();
        second(3_500).breaks(R2);
    }

    #[test]
    fn a_reader_ends_as_busy_only_if_there_is_a_writer() {
        let tried = |writes: bool| {
            let mut history = HistoryBuilder::new();
            let other = if writes { history.at(2_100).write(0) } else { history.at(2_100).read(0) };
            history.create(other).at(2_110).grant(other);
            let reader = history.at(2_500).try_read(1);
            history.at(2_505).ended(reader, Ending::Busy).end(3_000)
        };
        tried(true).holds();
        tried(false).breaks(R2);
    }
}
