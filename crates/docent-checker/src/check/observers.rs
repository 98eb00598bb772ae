use crate::analysis::Analysis;
use crate::elections::{Firsts, Observer};
use crate::event::Observing;
use crate::violation::{Found, Invariant, Violation};
use std::time::Duration;

/// **Observers** see the leader:
///
/// - The leader that is shown was first in the line, or the line was empty if none is shown, no longer ago
///   than a notification takes.
/// - Leaders are shown in the order of their terms.
/// - An observer that waits for changes is shown the last leader.
///
/// If the observer's client or server is disconnected, the leader may have changed long ago, and only the
/// order is checked. After a fault an observer reads again after up to a second. Leaders that led while it
/// did not wait need not be shown.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    for observer in analysis.elections.observers() {
        let Some(firsts) = Firsts::of(&analysis.replay, observer.path) else { continue };
        let wrong = [order(observer), truth(analysis, observer, &firsts), last(analysis, observer, &firsts)];
        found.extend(wrong.into_iter().flatten().map(|(at, what)| {
            Violation::new(Invariant::O1, at, what).client(observer.client).path(observer.path)
        }));
    }
}

type Wrong = (Duration, String);

/// Longest pause before an observer reads again after a fault.
const PAUSE: Duration = Duration::from_secs(1);

/// Finds an earlier leader that was shown after a later one.
fn order(observer: &Observer<'_>) -> Option<Wrong> {
    let mut latest = 0;
    observer.steps.iter().find_map(|(at, step)| {
        let Observing::Shown(Some(leader)) = step else { return None };
        let before = std::mem::replace(&mut latest, *leader);
        (before > *leader).then(|| (*at, format!("{leader} was shown to lead after {before}:")))
    })
}

/// Finds a shown leader that had stopped leading long before, or never led.
fn truth(analysis: &Analysis<'_>, observer: &Observer<'_>, firsts: &Firsts) -> Option<Wrong> {
    let tolerances = analysis.tolerances();
    let life = analysis.life(observer.client)?;
    let mut since = Duration::ZERO;
    observer.steps.iter().find_map(|(at, step)| {
        let Observing::Shown(leader) = step else {
            since = *at;
            return None;
        };
        let from = at.saturating_sub(tolerances.notification + tolerances.lag);
        let from = if matches!(observer.steps[0].1, Observing::Reads(_)) { since.min(from) } else { from };
        let well = life.apart.spare(from.saturating_sub(tolerances.reconnect), *at);
        let until = *at + tolerances.grain;
        let from = if well { from } else { Duration::ZERO };
        let true_then = firsts.between(from, until).any(|(.., first)| first == *leader);
        (!true_then).then(|| (*at, format!("{leader:?} was shown to lead, but did not since {from:?}:")))
    })
}

/// Finds an observer that waits, but is not shown the leader.
fn last(analysis: &Analysis<'_>, observer: &Observer<'_>, firsts: &Firsts) -> Option<Wrong> {
    let life = analysis.life(observer.client)?;
    let last_due =
        [analysis.leaving(observer.client), Some(analysis.facts().end.at)].into_iter().flatten().min()?;
    // A link that lost frames during a cut stays silent until the client gives the link up.
    let moment = analysis.tolerances().reconnect + analysis.tolerances().notification + PAUSE;
    let mut shown = None;
    for (place, (at, step)) in observer.steps.iter().enumerate() {
        match step {
            Observing::Shown(leader) => shown = Some(*leader),
            Observing::Follows(_) => {
                let until = observer.steps.get(place + 1).map_or(last_due, |(next, _)| *next);
                for (became_first, ceased, first) in
                    firsts.between(*at, until).filter(|(.., first)| Some(*first) != shown)
                {
                    let due = life.apart.quiet(became_first.max(*at), moment);
                    if let Some(due) = due.filter(|due| *due < ceased.min(until)) {
                        let what = format!("{first:?} leads, but {shown:?} was shown last:");
                        return Some((due, what));
                    }
                }
            }
            Observing::Reads(_) | Observing::Stopped => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use crate::Observing;
    use crate::event::{AttemptId, EventKind, FaultKind};
    use crate::history::{ElectionEvents, HistoryBuilder, LOCK};
    use crate::violation::Invariant::O1;
    use std::time::Duration;

    /// The first candidate leads until 5 s, then the second.
    fn terms() -> (HistoryBuilder, Option<u64>, Option<u64>) {
        let mut history = HistoryBuilder::new();
        let (first, second) = (history.at(100).campaign(0), history.campaign(1));
        history.create(first).create(second).at(110).grant(first);
        let fences = (Some(history.fence(first)), Some(history.fence(second)));
        history.at(5_000).releasing(first).delete(first).at(5_010).grant(second);
        (history, fences.0, fences.1)
    }

    fn record(history: &mut HistoryBuilder, at: u64, step: Observing) {
        history.at(at).record(3, EventKind::Observed(AttemptId(99), step));
    }

    /// An observer that always waits, with the leaders that it is shown and their times.
    fn shown(shown: &[(u64, Option<u64>)], end: u64) -> HistoryBuilder {
        let (mut history, ..) = terms();
        let waits = || Observing::Follows(LOCK.to_owned());
        record(&mut history, 50, waits());
        for (at, leader) in shown {
            record(&mut history, *at, Observing::Shown(*leader));
            record(&mut history, *at, waits());
        }
        history.run.events.sort_by_key(|event| event.at);
        history.end(end)
    }

    #[test]
    fn each_leader_is_shown_in_turn() {
        let (_, first, second) = terms();
        shown(&[(60, None), (120, first), (5_020, second)], 9_000).holds();
        shown(&[(120, first), (5_020, second)], 9_000).holds();
    }

    #[test]
    fn a_former_leader_that_is_still_shown_is_caught() {
        let (_, first, second) = terms();
        shown(&[(5_190, first), (5_195, second)], 9_000).breaks_also(O1);
        let (mut history, ..) = terms();
        record(&mut history, 5_150, Observing::Reads(LOCK.to_owned()));
        record(&mut history, 5_160, Observing::Shown(first));
        history.clone().end(9_000).holds();
        record(&mut history, 5_500, Observing::Reads(LOCK.to_owned()));
        record(&mut history, 5_510, Observing::Shown(first));
        history.end(9_000).breaks(O1);
    }

    #[test]
    fn a_leader_is_shown_for_longer_if_servers_may_lag() {
        let (_, first, _) = terms();
        let (mut history, ..) = terms();
        record(&mut history, 5_500, Observing::Reads(LOCK.to_owned()));
        record(&mut history, 5_510, Observing::Shown(first));
        history.run.facts.tolerances.lag = Duration::from_secs(1);
        history.end(9_000).holds();
    }

    #[test]
    fn a_shown_leader_that_never_led_is_caught() {
        let (_, first, second) = terms();
        shown(&[(120, first), (4_000, second)], 9_000).breaks(O1);
    }

    #[test]
    fn a_leader_that_is_not_shown_is_caught() {
        let (_, first, second) = terms();
        shown(&[(120, first)], 8_100).holds();
        shown(&[(120, first)], 8_300).breaks(O1);
        shown(&[(4_500, first), (5_020, second)], 9_000).breaks(O1);
    }

    #[test]
    fn an_earlier_leader_is_not_shown_again() {
        let (_, first, second) = terms();
        shown(&[(120, first), (5_020, second), (5_030, first), (5_040, second)], 9_000).breaks(O1);
    }

    #[test]
    fn an_observer_that_is_cut_off_is_shown_nothing_new() {
        let (_, first, second) = terms();
        let mut history = shown(&[(120, first)], 1_000);
        history.at(4_900).fault(3, FaultKind::Cut).at(20_000).heal(3, FaultKind::Cut);
        record(&mut history, 21_000, Observing::Shown(second));
        history.run.events.sort_by_key(|event| event.at);
        history.end(22_000).holds();
    }
}
