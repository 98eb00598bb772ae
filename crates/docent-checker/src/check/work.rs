use crate::analysis::Analysis;
use crate::attempt_trace::{Act, AttemptTrace, Deed};
use crate::violation::{Found, Invariant, Violation};
use std::time::Duration;

/// **Work is bound to its term**: work does not begin in a lost term. Nothing is done under a term after its
/// loss is known, except during the grace that the candidate requested.
///
/// Applies to candidates whose work is bound to their terms. M1 and M11 check that no client acts with a lost
/// term. Assumed: the work checks its term whenever it is polled.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    for trace in analysis.attempts.all() {
        let Some(grace) = analysis.elections.campaign(trace.id()).and_then(|campaign| campaign.bound) else {
            continue;
        };
        found.extend(wrong(analysis, trace, grace).map(|(at, what)| {
            Violation::new(Invariant::E4, at, what)
                .attempt(trace.id())
                .client(trace.client)
                .path(trace.attempt.path.clone())
        }));
    }
}

fn wrong(analysis: &Analysis<'_>, trace: &AttemptTrace<'_>, grace: Duration) -> Option<(Duration, String)> {
    let is_work = |act: &&Act| matches!(act.deed, Deed::HeldChecked { .. } | Deed::Used(_));
    let seen_lost = |act: &Act| matches!(act.deed, Deed::HeldChecked { held: false, .. });
    let first = trace.acts.iter().find(is_work)?;
    if seen_lost(first) {
        return Some((first.at, "work began in a lost term:".to_owned()));
    }
    let lost = trace.acts.iter().find(|act| act.deed.reports_held() == Some(false))?;
    // Without a grace, polled work never finds its term lost.
    let until = if grace.is_zero() { lost.at } else { lost.at + grace + analysis.tolerances().grain };
    let continued = trace
        .acts
        .iter()
        .filter(is_work)
        .find(|act| act.index >= lost.index && (act.at > until || grace.is_zero() && seen_lost(act)))?;
    let after = continued.at.saturating_sub(lost.at);
    Some((
        continued.at,
        format!("work continued with {:?}, {after:?} after the loss of its term was known:", continued.deed),
    ))
}

#[cfg(test)]
mod tests {
    use crate::event::{AttemptId, FaultKind};
    use crate::history::{ElectionEvents, HistoryBuilder};
    use crate::violation::Invariant::E4;

    /// A leader that is cut off, and whose lease ends at 4.1 s.
    fn lost(grace: u64) -> (HistoryBuilder, AttemptId) {
        let mut history = HistoryBuilder::new();
        let term = history.at(100).run_with(0, 7, grace, 0);
        history.create(term).at(110).grant(term).held_checked(term, true).at(200).fault(0, FaultKind::Cut);
        history.at(4_090).held_checked(term, true).used(term);
        (history, term)
    }

    #[test]
    fn work_that_is_dropped_when_its_term_is_lost_is_right() {
        let (mut history, term) = lost(0);
        history.at(4_100).lost(term).dropped(term).end(5_000).holds();
    }

    #[test]
    fn work_that_continues_after_its_term_is_caught() {
        let (mut history, term) = lost(0);
        history.at(4_100).held_checked(term, false).used(term).at(4_110).dropped(term).end(5_000).breaks(E4);
    }

    #[test]
    fn work_that_stops_within_its_grace_is_right() {
        let works = |until: u64| {
            let (mut history, term) = lost(1_000);
            history
                .at(4_100)
                .held_checked(term, false)
                .at(until)
                .held_checked(term, false)
                .used(term)
                .dropped(term);
            history.end(6_000)
        };
        works(5_100).holds();
        works(5_110).breaks(E4);
    }

    #[test]
    fn work_does_not_begin_in_a_term_that_is_lost() {
        let mut history = HistoryBuilder::new();
        let term = history.at(100).run_with(0, 7, 1_000, 0);
        history.create(term).at(200).fault(0, FaultKind::Cut);
        history.at(4_100).grant(term).held_checked(term, false).dropped(term).end(5_000).breaks(E4);
    }

    #[test]
    fn a_candidate_that_campaigns_by_hand_may_keep_working() {
        let mut history = HistoryBuilder::new();
        let term = history.at(100).campaign(0);
        history.create(term).at(110).grant(term).at(200).fault(0, FaultKind::Cut);
        history
            .at(4_100)
            .held_checked(term, false)
            .at(4_500)
            .held_checked(term, false)
            .dropped(term)
            .end(5_000)
            .holds();
    }
}
