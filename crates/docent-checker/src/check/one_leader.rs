use crate::analysis::Analysis;
use crate::event::AttemptId;
use crate::journal::ChangeKind;
use crate::violation::{Found, Invariant, Violation};

/// **One leader**: at each transaction at most one term is valid. A write under a term is applied while the
/// term's node is there and the first of its line.
///
/// A line has one first at each transaction, so that no two terms can write at one. M2 asks by which places
/// terms are granted, M3 at which times leaders believe to lead. Assumed: a write under a term makes a node
/// named after its attempt, as `a12-…`.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    for change in analysis.run.journal.iter().filter(|change| change.kind == ChangeKind::Created) {
        let Some(id) = writer(&change.path).filter(|id| analysis.elections.standing(*id).is_some()) else {
            continue;
        };
        let Some(trace) = analysis.attempts.get(id) else { continue };
        let node = analysis.node_of(trace).map(|(_, node)| node);
        let valid = node.is_some_and(|node| {
            node.first.is_some_and(|first| first.zxid < change.zxid)
                && node.gone.is_none_or(|gone| gone.when.zxid > change.zxid)
        });
        if !valid {
            let what = format!("transaction {} was applied under a term that was not valid:", change.zxid);
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

    /// The first leads until 200 ms, then the second.
    fn terms() -> (HistoryBuilder, AttemptId, AttemptId) {
        let mut history = HistoryBuilder::new();
        let (first, second) = (history.at(100).campaign(0), history.campaign(1));
        history.create(first).create(second).at(110).grant(first).at(120).write_under(first);
        (history, first, second)
    }

    #[test]
    fn each_writes_in_its_term() {
        let (mut history, first, second) = terms();
        history.at(200).releasing(first).delete(first).at(203).grant(second).write_under(second);
        history.end(300).holds();
    }

    #[test]
    fn what_is_written_after_a_term_is_caught() {
        let (mut history, first, second) = terms();
        history.at(200).releasing(first).delete(first).at(203).grant(second).write_under(first);
        history.end(300).breaks(E1);
    }

    #[test]
    fn what_is_written_before_a_term_is_caught() {
        let (mut history, first, second) = terms();
        history.at(150).write_under(second).at(200).releasing(first).delete(first).at(203).grant(second);
        history.end(300).breaks(E1);
    }

    #[test]
    fn who_never_was_the_first_is_caught() {
        let (mut history, first, second) = terms();
        history.at(150).dropped(first).grant(second).write_under(second).dropped(second).delete(second);
        history.at(160).delete(first);
        assert_eq!(history.end(300).broken(), [M2, E1]);
    }
}
