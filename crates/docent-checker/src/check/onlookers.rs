use crate::analysis::Analysis;
use crate::elections::{Firsts, Onlooker};
use crate::event::Onlooking;
use crate::violation::{Found, Invariant, Violation};
use std::time::Duration;

/// **Onlookers** see the leader: the one shown was the first of the line, or nobody stood, at a moment that
/// is not longer ago than news take; leaders are shown in the order of their terms; and an onlooker that
/// waits for news is shown the last leader.
///
/// A leader may have gone long ago when the onlooker's client is not connected, or its server is not: then
/// only the order is asked for. After something went wrong an onlooker looks again after up to a second;
/// leaders shown while it did not wait are not asked for.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    for onlooker in analysis.elections.onlookers() {
        let Some(firsts) = Firsts::of(&analysis.replay, onlooker.path) else { continue };
        let wrong = [order(onlooker), truth(analysis, onlooker, &firsts), last(analysis, onlooker, &firsts)];
        found.extend(wrong.into_iter().flatten().map(|(at, what)| {
            Violation::new(Invariant::O1, at, what).client(onlooker.client).path(onlooker.path)
        }));
    }
}

type Wrong = (Duration, String);

/// Longest pause before an onlooker looks again after something went wrong.
const PAUSE: Duration = Duration::from_secs(1);

/// An earlier leader was shown after a later one.
fn order(onlooker: &Onlooker<'_>) -> Option<Wrong> {
    let mut latest = 0;
    onlooker.steps.iter().find_map(|(at, step)| {
        let Onlooking::Shown(Some(leader)) = step else { return None };
        let before = std::mem::replace(&mut latest, *leader);
        (before > *leader).then(|| (*at, format!("{leader} was shown to lead after {before}:")))
    })
}

/// The shown leader had not led for long, or never.
fn truth(analysis: &Analysis<'_>, onlooker: &Onlooker<'_>, firsts: &Firsts) -> Option<Wrong> {
    let tolerances = analysis.tolerances();
    let life = analysis.life(onlooker.client)?;
    let mut since = Duration::ZERO;
    onlooker.steps.iter().find_map(|(at, step)| {
        let Onlooking::Shown(leader) = step else {
            since = *at;
            return None;
        };
        let from = at.saturating_sub(tolerances.news + tolerances.lag);
        let from = if matches!(onlooker.steps[0].1, Onlooking::Asks(_)) { since.min(from) } else { from };
        let well = life.apart.spare(from.saturating_sub(tolerances.reconnect), *at);
        let until = *at + tolerances.grain;
        let from = if well { from } else { Duration::ZERO };
        let true_then = firsts.between(from, until).any(|(.., first)| first == *leader);
        (!true_then).then(|| (*at, format!("{leader:?} was shown to lead, and did not since {from:?}:")))
    })
}

/// It waits, and is not shown the leader.
fn last(analysis: &Analysis<'_>, onlooker: &Onlooker<'_>, firsts: &Firsts) -> Option<Wrong> {
    let life = analysis.life(onlooker.client)?;
    let gone =
        [analysis.leaving(onlooker.client), Some(analysis.facts().end.at)].into_iter().flatten().min()?;
    // A link that lost something while it was cut stays silent until it is given up.
    let moment = analysis.tolerances().reconnect + analysis.tolerances().news + PAUSE;
    let mut shown = None;
    for (place, (at, step)) in onlooker.steps.iter().enumerate() {
        match step {
            Onlooking::Shown(leader) => shown = Some(*leader),
            Onlooking::Waits(_) => {
                let until = onlooker.steps.get(place + 1).map_or(gone, |(next, _)| *next);
                for (came, went, first) in
                    firsts.between(*at, until).filter(|(.., first)| Some(*first) != shown)
                {
                    let due = life.apart.quiet(came.max(*at), moment);
                    if let Some(due) = due.filter(|due| *due < went.min(until)) {
                        let what = format!("{first:?} leads, and {shown:?} was shown last:");
                        return Some((due, what));
                    }
                }
            }
            Onlooking::Asks(_) | Onlooking::Left => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use crate::Onlooking;
    use crate::event::{AttemptId, EventKind, FaultKind};
    use crate::history::{ElectionEvents, HistoryBuilder, LOCK};
    use crate::violation::Invariant::O1;
    use std::time::Duration;

    /// The first one leads until 5 s, then the second one.
    fn terms() -> (HistoryBuilder, Option<u64>, Option<u64>) {
        let mut history = HistoryBuilder::new();
        let (first, second) = (history.at(100).campaign(0), history.campaign(1));
        history.create(first).create(second).at(110).grant(first);
        let fences = (Some(history.fence(first)), Some(history.fence(second)));
        history.at(5_000).releasing(first).delete(first).at(5_010).grant(second);
        (history, fences.0, fences.1)
    }

    fn look(history: &mut HistoryBuilder, at: u64, step: Onlooking) {
        history.at(at).tell(3, EventKind::LookedOn(AttemptId(99), step));
    }

    /// An onlooker that waits all the time, with the leaders shown and their times.
    fn shown(shown: &[(u64, Option<u64>)], end: u64) -> HistoryBuilder {
        let (mut history, ..) = terms();
        let waits = || Onlooking::Waits(LOCK.to_owned());
        look(&mut history, 50, waits());
        for (at, leader) in shown {
            look(&mut history, *at, Onlooking::Shown(*leader));
            look(&mut history, *at, waits());
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
    fn a_leader_that_is_gone_is_caught() {
        let (_, first, second) = terms();
        shown(&[(5_190, first), (5_195, second)], 9_000).breaks_also(O1);
        let (mut history, ..) = terms();
        look(&mut history, 5_150, Onlooking::Asks(LOCK.to_owned()));
        look(&mut history, 5_160, Onlooking::Shown(first));
        history.clone().end(9_000).holds();
        look(&mut history, 5_500, Onlooking::Asks(LOCK.to_owned()));
        look(&mut history, 5_510, Onlooking::Shown(first));
        history.end(9_000).breaks(O1);
    }

    #[test]
    fn a_leader_is_shown_for_longer_where_servers_may_be_behind() {
        let (_, first, _) = terms();
        let (mut history, ..) = terms();
        look(&mut history, 5_500, Onlooking::Asks(LOCK.to_owned()));
        look(&mut history, 5_510, Onlooking::Shown(first));
        history.run.facts.tolerances.lag = Duration::from_secs(1);
        history.end(9_000).holds();
    }

    #[test]
    fn who_never_led_is_caught() {
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
    fn leaders_do_not_come_back() {
        let (_, first, second) = terms();
        shown(&[(120, first), (5_020, second), (5_030, first), (5_040, second)], 9_000).breaks(O1);
    }

    #[test]
    fn who_is_cut_off_is_shown_nothing_new() {
        let (_, first, second) = terms();
        let mut history = shown(&[(120, first)], 1_000);
        history.at(4_900).fault(3, FaultKind::Cut).at(20_000).heal(3, FaultKind::Cut);
        look(&mut history, 21_000, Onlooking::Shown(second));
        history.run.events.sort_by_key(|event| event.at);
        history.end(22_000).holds();
    }
}
