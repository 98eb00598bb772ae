use crate::analysis::Analysis;
use crate::event::Following;
use crate::listings::{PAUSE, State, histories};
use crate::publications::{Follower, followers};
use crate::violation::{Found, Invariant, Violation};
use std::time::Duration;

/// **The last value arrives**: after all faults have ended and the value no longer changes, each subscription
/// has shown it, or has reported that it does not exist or cannot be read.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    let followers = followers(&analysis.run.events);
    let paths = followers.iter().map(|follower| follower.path);
    let histories = histories(analysis.run, paths, |key, path| key == path);
    for follower in &followers {
        if let Some((at, what)) = wrong(analysis, follower, &histories[follower.path]) {
            let violation = Violation::new(Invariant::C2, at, what);
            found.push(violation.client(follower.client).path(follower.path));
        }
    }
}

fn wrong(analysis: &Analysis<'_>, follower: &Follower<'_>, states: &[State]) -> Option<(Duration, String)> {
    let (life, calm) = (analysis.life(follower.client)?, analysis.calm()?);
    let tolerances = analysis.tolerances();
    let moment = tolerances.reconnect + tolerances.notification + PAUSE;
    let last_due = [follower.stopped, analysis.leaving(follower.client), Some(analysis.facts().end.at)];
    let last_due = last_due.into_iter().flatten().min()?;
    states.iter().enumerate().find_map(|(place, state)| {
        let next = states.get(place + 1).map_or(Duration::MAX, |next| next.at);
        let due = life.apart.quiet(state.at.max(calm).max(follower.began), moment)?;
        if due + tolerances.grain >= next.min(last_due) {
            return None;
        }
        let last = follower.steps.iter().rev().find(|(at, _)| *at <= due).map(|(_, step)| *step);
        let is = state.nodes.get(follower.path);
        let well = match (is, last) {
            (None, last) => last == Some(&Following::Missing),
            (Some((_, None)), last) => last == Some(&Following::Refused),
            (Some((zxid, Some(_))), Some(Following::Saw { zxid: shown, .. })) => shown == zxid,
            _ => false,
        };
        (!well).then(|| (due, format!("the value is {is:?}, but {last:?} was shown:")))
    })
}

#[cfg(test)]
mod tests {
    use crate::event::{AttemptId, EventKind, Following};
    use crate::history::{ConfigEvents, FOLLOWER, HistoryBuilder};
    use crate::violation::Invariant::C2;

    fn seen(history: &mut HistoryBuilder, step: Following) -> HistoryBuilder {
        history.at(400).record(3, EventKind::Followed(AttemptId(FOLLOWER), step));
        history.at(1_000).world(EventKind::Calm).end(60_000)
    }

    fn followed() -> HistoryBuilder {
        let mut history = HistoryBuilder::new();
        history.at(100).write_node("/c", 0, Some(1)).at(150).follow(3, "/c").saw(3, "/c", 1);
        history
    }

    #[test]
    fn the_latest_value_is_shown() {
        let mut history = followed();
        history.at(200).write_again("/c", 0, Some(2)).at(210).saw(3, "/c", 2);
        history.at(1_000).world(EventKind::Calm).end(60_000).holds();
        let mut history = followed();
        seen(history.at(200).write_again("/c", 0, None), Following::Refused).holds();
        let mut history = followed();
        seen(history.at(200).delete_path("/c", 1), Following::Missing).holds();
    }

    #[test]
    fn a_latest_value_that_is_not_shown_is_caught() {
        let mut history = followed();
        history.at(200).write_again("/c", 0, Some(2)).at(1_000).world(EventKind::Calm).end(60_000).breaks(C2);
        let mut history = followed();
        history.at(200).delete_path("/c", 1).at(1_000).world(EventKind::Calm).end(60_000).breaks(C2);
        let mut history = followed();
        seen(history.at(200).write_again("/c", 0, None), Following::Missing).breaks(C2);
    }
}
