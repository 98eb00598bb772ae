use crate::analysis::{Analysis, End};
use crate::attempt_trace::AttemptTrace;
use crate::event::{EventKind, FaultKind};
use crate::violation::{Found, Invariant, Violation};
use std::time::Duration;

/// **Stability**: a term ends by a decision of its leader or by a fault. Without faults no leader changes
/// unless it wants to.
///
/// - Work that is bound to a term is dropped only if the term is lost, or if the candidate was stopped.
/// - The session of a leader that was connected and healthy for a whole timeout does not expire.
/// - Its node is not deleted by anything except the faults of the run.
///
/// M11 checks that no term is lost while its node exists without a fault.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    for trace in analysis.attempts.all().filter(|trace| analysis.elections.campaign(trace.id()).is_some()) {
        let wrong = [dropped(analysis, trace), taken(analysis, trace)];
        found.extend(wrong.into_iter().flatten().map(|(at, what)| {
            Violation::new(Invariant::E8, at, what)
                .attempt(trace.id())
                .client(trace.client)
                .path(trace.attempt.path.clone())
        }));
    }
}

fn dropped(analysis: &Analysis<'_>, trace: &AttemptTrace<'_>) -> Option<(Duration, &'static str)> {
    let campaign = analysis.elections.campaign(trace.id()).filter(|campaign| campaign.bound.is_some())?;
    let at = trace.dropped?;
    let stopping = analysis.elections.candidates().get(&campaign.candidate)?.stopping;
    let reasons = [trace.learned_lost(), stopping, analysis.leaving(trace.client)];
    let reason = reasons.into_iter().flatten().any(|reason| reason <= at);
    (!reason).then_some((at, "its work was dropped without a reason:"))
}

fn taken(analysis: &Analysis<'_>, trace: &AttemptTrace<'_>) -> Option<(Duration, &'static str)> {
    trace.granted?;
    let (_, node) = analysis.node_of(trace)?;
    let deleted =
        node.deleted.filter(|deleted| trace.given_up().is_none_or(|ended| ended > deleted.when.at))?;
    let at = deleted.when.at;
    let life = analysis.life(trace.client)?;
    match analysis.end_of(node, deleted) {
        End::Own => None,
        End::Expired => {
            let well = life.apart.spare(at.saturating_sub(analysis.facts().timeout), at);
            well.then_some((at, "its session expired without a fault:"))
        }
        End::ThirdParty => {
            let harm = analysis.events().any(|(_, event)| {
                event.at <= at + analysis.tolerances().grain
                    && event.client.is_some_and(|client| client.number == trace.client.number)
                    && matches!(event.kind, EventKind::Fault(FaultKind::Deleted | FaultKind::Expired))
            });
            (!harm).then_some((at, "its node was deleted without a fault:"))
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::event::{AttemptId, EventKind, FaultKind, LinkState};
    use crate::history::{ElectionEvents, HistoryBuilder, candidate};
    use crate::journal::EndCause::{Expired, Forced};
    use crate::violation::Invariant::{E7, E8, M3, M11};
    use crate::{Candidacy, Invariant};

    fn leading() -> (HistoryBuilder, AttemptId) {
        let mut history = HistoryBuilder::new();
        let term = history.at(100).run_at(0, 7);
        history.create(term).at(110).grant(term);
        (history, term)
    }

    fn broken(history: &mut HistoryBuilder) -> Vec<Invariant> {
        let mut broken = history.end(9_000).broken();
        broken.retain(|invariant| ![M3, M11, E7].contains(invariant));
        broken
    }

    #[test]
    fn a_leader_keeps_leading_until_it_stops() {
        leading().0.end(60_000).holds();
    }

    #[test]
    fn a_leader_that_stops_ends_its_term() {
        let (mut history, term) = leading();
        history
            .at(200)
            .record(0, EventKind::Campaigned(candidate(7), Candidacy::Stopping))
            .dropped(term)
            .delete(term);
        history.end(9_000).holds();
    }

    #[test]
    fn work_that_is_dropped_without_a_cause_is_caught() {
        let (mut history, term) = leading();
        assert_eq!(broken(history.at(200).dropped(term).delete(term)), [E8]);
    }

    #[test]
    fn a_session_that_expires_without_a_cause_is_caught() {
        let (mut history, term) = leading();
        history.at(7_000).end_session(1, Expired).at(7_001).lost(term).dropped(term);
        assert_eq!(broken(&mut history), [E8]);
        let (mut history, term) = leading();
        history.at(300).fault(0, FaultKind::Cut).at(4_100).lost(term).at(7_000).end_session(1, Expired);
        history.dropped(term);
        assert_eq!(broken(&mut history), []);
    }

    #[test]
    fn a_forced_session_end_without_a_fault_is_caught() {
        for recorded in [true, false] {
            let (mut history, term) = leading();
            history.at(300);
            if recorded {
                history.fault(0, FaultKind::Expired);
            }
            history.end_session(1, Forced).at(310).lost(term).dropped(term).link(0, LinkState::Lost);
            assert_eq!(broken(&mut history), if recorded { vec![] } else { vec![E8] });
        }
    }
}
