use crate::analysis::Analysis;
use crate::event::AttemptId;
use crate::journal::ChangeKind;
use crate::violation::{Found, Invariant, Violation};

/// **One leader**: at most one term is valid at each transaction. A write under a term is applied only while
/// the term's node exists and is first in its line.
///
/// A line has one first node at each transaction, so two terms cannot both write in it. M2 checks the places
/// on which terms are granted, and M3 the times at which leaders believe that they lead. Assumed: a write
/// under a term creates a node that is named after the term's attempt, such as `a12-…`.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    for change in analysis.run.journal.iter().filter(|change| change.kind == ChangeKind::Created) {
        let Some(id) = writer(&change.path).filter(|id| analysis.elections.campaign(*id).is_some()) else {
            continue;
        };
        let Some(trace) = analysis.attempts.get(id) else { continue };
        let node = analysis.node_of(trace).map(|(_, node)| node);
        let valid = node.is_some_and(|node| {
            node.first.is_some_and(|first| first.zxid < change.zxid)
                && node.deleted.is_none_or(|deleted| deleted.when.zxid > change.zxid)
        });
        if !valid {
            let what = format!("transaction {} was applied under an invalid term:", change.zxid);
            found.push(
                Violation::new(Invariant::E1, change.at, what)
                    .attempt(id)
                    .client(trace.client)
                    .path(trace.attempt.path.clone())
                    .path(change.path.clone()),
            );
        }
    }
}

/// The attempt that a written node is named after.
fn writer(path: &str) -> Option<AttemptId> {
    let (writer, _) = path.rsplit('/').next()?.split_once('-')?;
    writer.strip_prefix('a')?.parse().ok().map(AttemptId)
}

#[cfg(test)]
mod tests {
    use crate::event::AttemptId;
    use crate::history::{ElectionEvents, HistoryBuilder};
    use crate::violation::Invariant::{E1, M2};

    /// The first candidate leads until 200 ms, then the second.
    fn terms() -> (HistoryBuilder, AttemptId, AttemptId) {
        let mut history = HistoryBuilder::new();
        let (first, second) = (history.at(100).campaign(0), history.campaign(1));
        history.create(first).create(second).at(110).grant(first).at(120).write_under(first);
        (history, first, second)
    }

    #[test]
    fn each_leader_writes_in_its_term() {
        let (mut history, first, second) = terms();
        history.at(200).releasing(first).delete(first).at(203).grant(second).write_under(second);
        history.end(300).holds();
    }

    #[test]
    fn a_write_after_a_term_is_caught() {
        let (mut history, first, second) = terms();
        history.at(200).releasing(first).delete(first).at(203).grant(second).write_under(first);
        history.end(300).breaks(E1);
    }

    #[test]
    fn a_write_before_a_term_is_caught() {
        let (mut history, first, second) = terms();
        history.at(150).write_under(second).at(200).releasing(first).delete(first).at(203).grant(second);
        history.end(300).breaks(E1);
    }

    #[test]
    fn a_leader_that_was_never_first_is_caught() {
        let (mut history, first, second) = terms();
        history.at(150).dropped(first).grant(second).write_under(second).dropped(second).delete(second);
        history.at(160).delete(first);
        assert_eq!(history.end(300).broken(), [M2, E1]);
    }
}
