use crate::analysis::Analysis;
use crate::attempt_trace::AttemptTrace;
use crate::run::Noted;
use crate::violation::{Found, Invariant, Violation};
use std::time::Duration;

/// **Takeover delay**: if an election has a takeover delay, a leader begins only after that delay, counted
/// from the moment at which it became first in the line, unless its predecessor resigned.
///
/// A leader that resigned removed its term from the election's node. The facts contain the content of that
/// node at each transaction.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    for trace in analysis.attempts.all() {
        let campaign = analysis.elections.campaign(trace.id()).filter(|campaign| !campaign.delay.is_zero());
        let Some((early, delay)) =
            campaign.and_then(|it| Some((early(analysis, trace, it.delay)?, it.delay)))
        else {
            continue;
        };
        let what = format!("it began {early:?} before the end of the takeover delay of {delay:?}:");
        let at = trace.granted.map_or(trace.began, |(at, _)| at);
        found.push(
            Violation::new(Invariant::E9, at, what)
                .attempt(trace.id())
                .client(trace.client)
                .path(trace.attempt.path.clone()),
        );
    }
}

/// The time by which a term began too early.
fn early(analysis: &Analysis<'_>, trace: &AttemptTrace<'_>, delay: Duration) -> Option<Duration> {
    let (at, _) = trace.granted?;
    let (_, node) = analysis.node_of(trace)?;
    let first = node.first?;
    let by_then = |noted: &&Noted| noted.path == trace.attempt.path && noted.zxid <= first.zxid;
    let before = analysis.facts().noted.iter().rev().find(by_then)?;
    before.term?;
    (first.at + delay).checked_sub(at + analysis.tolerances().grain).filter(|early| !early.is_zero())
}

#[cfg(test)]
mod tests {
    use crate::event::AttemptId;
    use crate::history::{ElectionEvents, HistoryBuilder, LOCK};
    use crate::run::Noted;
    use crate::violation::Invariant::E9;

    /// The first candidate's term is recorded, and resigned from if `resigned` is true. The second candidate
    /// becomes first at 1 s.
    fn ended_term(resigned: bool) -> (HistoryBuilder, AttemptId) {
        let mut history = HistoryBuilder::new();
        let (first, second) = (history.at(100).run_with(0, 7, 0, 2_000), history.run_with(1, 8, 0, 2_000));
        history.create(first).create(second).at(109).pass();
        let noted = |zxid, term| Noted { path: LOCK.to_owned(), zxid, term };
        history.run.facts.noted.push(noted(7, Some(5)));
        history.at(110).grant(first).at(1_000).releasing(first);
        if resigned {
            history.pass().run.facts.noted.push(noted(8, None));
        }
        history.delete(first);
        (history, second)
    }

    #[test]
    fn the_successor_of_a_leader_that_resigned_starts_immediately() {
        let (mut history, second) = ended_term(true);
        history.at(1_010).grant(second).end(9_000).holds();
    }

    #[test]
    fn the_successor_of_any_other_leader_waits() {
        let (mut history, second) = ended_term(false);
        history.clone().at(3_010).grant(second).end(9_000).holds();
        history.at(2_900).grant(second).end(9_000).breaks(E9);
    }
}
