use crate::analysis::{Analysis, End};
use crate::attempt_trace::AttemptTrace;
use crate::journal_replay::Remover;
use crate::violation::{Found, Invariant, Violation};
use std::time::Duration;

/// **A leader whose node is deleted** by a third party learns within the time for a notification that its
/// term is lost. Its candidate then joins the line again immediately, unless the candidate was stopped.
///
/// E6 checks that the new node is created. Applies to candidates that campaign repeatedly on their own.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    for candidate in analysis.elections.candidates().values() {
        for (place, id) in candidate.attempts.iter().enumerate() {
            let Some(trace) = analysis.attempts.get(*id) else { continue };
            let bound = analysis.elections.campaign(*id).is_some_and(|campaign| campaign.bound.is_some());
            let Some(due) = due(analysis, trace).filter(|_| bound) else { continue };
            let leaving = [analysis.leaving(trace.client), candidate.stopping].into_iter().flatten().min();
            if !analysis.shows(due) || leaving.is_some_and(|leaving| leaving <= due) {
                continue;
            }
            let again = candidate.attempts.get(place + 1).and_then(|next| analysis.attempts.get(*next));
            let what = match (trace.until().is_some_and(|until| until <= due), again) {
                (false, _) => "it does not know that its node was deleted:",
                (true, Some(again)) if again.began <= due => continue,
                (true, _) => "its node was deleted, but it did not rejoin:",
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

/// Time by which the leader must know, and its candidate must campaign again, if a third party deleted the
/// node of its term.
fn due(analysis: &Analysis<'_>, trace: &AttemptTrace<'_>) -> Option<Duration> {
    let (granted, _) = trace.granted?;
    let (_, node) = analysis.node_of(trace)?;
    let deleted = node.deleted.filter(|deleted| matches!(deleted.by, Remover::Session(_)))?;
    if analysis.end_of(node, deleted) != End::ThirdParty
        || trace.given_up().is_some_and(|ended| ended <= deleted.when.at)
    {
        return None;
    }
    Some(analysis.notice(trace.client, node)?.max(granted + analysis.tolerances().notification))
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
    fn a_leader_notices_the_deletion_and_campaigns_again() {
        let (mut history, term) = deleted();
        history.at(1_150).lost(term).dropped(term);
        let again = history.run_at(0, 7);
        history.at(1_160).create(again).at(1_170).grant(again).end(9_000).holds();
    }

    #[test]
    fn a_leader_that_does_not_notice_the_deletion_is_caught() {
        let (mut history, term) = deleted();
        history.at(2_000).lost(term).dropped(term);
        let again = history.run_at(0, 7);
        history.at(2_010).create(again).at(2_020).grant(again);
        assert_eq!(history.end(9_000).broken(), [M11, E7]);
    }

    #[test]
    fn a_leader_that_does_not_campaign_again_is_caught() {
        let (mut history, term) = deleted();
        history.at(1_150).lost(term).dropped(term).end(9_000).breaks(E7);
    }

    #[test]
    fn a_candidate_that_stops_need_not_campaign_again() {
        let (mut history, term) = deleted();
        history.at(1_100).record(0, EventKind::Campaigned(candidate(7), Candidacy::Stopping));
        history.lost(term).dropped(term).end(9_000).holds();
        let (mut history, term) = deleted();
        history.at(1_100).lost(term).dropped(term);
        let again = history.run_at(0, 7);
        history.at(1_110).ended(again, Ending::Cancelled).end(9_000);
        assert!(!history.broken().contains(&E6));
    }
}
