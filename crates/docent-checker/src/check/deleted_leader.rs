use crate::analysis::{Analysis, End};
use crate::attempt_trace::AttemptTrace;
use crate::journal_replay::Remover;
use crate::violation::{Found, Invariant, Violation};
use std::time::Duration;

/// **A leader whose node is deleted** by somebody else knows within the time of news that its term is lost,
/// and its candidate stands again at once, unless that was stopped.
///
/// That it is in the line again is for E6. Asked of candidates that stand again by themselves.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    for candidate in analysis.elections.candidates().values() {
        for (place, id) in candidate.attempts.iter().enumerate() {
            let Some(trace) = analysis.attempts.get(*id) else { continue };
            let bound = analysis.elections.standing(*id).is_some_and(|standing| standing.bound.is_some());
            let Some(due) = due(analysis, trace).filter(|_| bound) else { continue };
            let leaving = [analysis.leaving(trace.client), candidate.stopping].into_iter().flatten().min();
            if !analysis.shows(due) || leaving.is_some_and(|leaving| leaving <= due) {
                continue;
            }
            let again = candidate.attempts.get(place + 1).and_then(|next| analysis.attempts.get(*next));
            let what = match (trace.until().is_some_and(|until| until <= due), again) {
                (false, _) => "its node was deleted, which it does not know:",
                (true, Some(again)) if again.began <= due => continue,
                (true, _) => "its node was deleted, and it does not stand again:",
            };
            found.push(
                Violation::new(Invariant::E7, due, what)
                    .attempt(*id)
                    .client(trace.client)
                    .path(trace.attempt.path.clone()),
            );
        }
    }
}

/// Time by which it has to know, and to stand again, if somebody else deleted the node of its term.
fn due(analysis: &Analysis<'_>, trace: &AttemptTrace<'_>) -> Option<Duration> {
    let (granted, _) = trace.granted?;
    let (_, node) = analysis.node_of(trace)?;
    let gone = node.gone.filter(|gone| matches!(gone.by, Remover::Session(_)))?;
    if analysis.end_of(node, gone) != End::Others || trace.given_up().is_some_and(|over| over <= gone.when.at)
    {
        return None;
    }
    Some(analysis.notice(trace.client, node)?.max(granted + analysis.tolerances().news))
}

#[cfg(test)]
mod tests {
    use crate::event::{AttemptId, EventKind, FaultKind};
    use crate::history::{ElectionEvents, HistoryBuilder, candidate};
    use crate::violation::Invariant::{E6, E7, M11};
    use crate::{Candidacy, Ending};

    fn deleted() -> (HistoryBuilder, AttemptId) {
        let mut history = HistoryBuilder::new();
        let term = history.at(100).run_at(0, 7);
        let node = history.create(term).node(term);
        history.at(110).grant(term).at(1_000).fault(0, FaultKind::Deleted).delete_path(&node, 7);
        (history, term)
    }

    #[test]
    fn it_knows_and_stands_again() {
        let (mut history, term) = deleted();
        history.at(1_150).lost(term).dropped(term);
        let again = history.run_at(0, 7);
        history.at(1_160).create(again).at(1_170).grant(again).end(9_000).holds();
    }

    #[test]
    fn who_does_not_know_is_caught() {
        let (mut history, term) = deleted();
        history.at(2_000).lost(term).dropped(term);
        let again = history.run_at(0, 7);
        history.at(2_010).create(again).at(2_020).grant(again);
        assert_eq!(history.end(9_000).broken(), [M11, E7]);
    }

    #[test]
    fn who_does_not_stand_again_is_caught() {
        let (mut history, term) = deleted();
        history.at(1_150).lost(term).dropped(term).end(9_000).breaks(E7);
    }

    #[test]
    fn who_stops_need_not_stand_again() {
        let (mut history, term) = deleted();
        history.at(1_100).tell(0, EventKind::Stood(candidate(7), Candidacy::Stopping));
        history.lost(term).dropped(term).end(9_000).holds();
        let (mut history, term) = deleted();
        history.at(1_100).lost(term).dropped(term);
        let again = history.run_at(0, 7);
        history.at(1_110).ended(again, Ending::Cancelled).end(9_000);
        assert!(!history.broken().contains(&E6));
    }
}
