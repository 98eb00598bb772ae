use crate::analysis::Analysis;
use crate::event::{ClientId, LinkState};
use crate::journal::EndCause;
use crate::timeline::{Link, Timeline};
use crate::violation::{Found, Invariant, Violation};
use std::collections::BTreeMap;
use std::time::Duration;

/// **Connection state**:
///
/// - Generations and counts never decrease. Each generation has one session, and each session one generation.
///   A lost generation does not return, and nothing follows `Closed`.
/// - A loss is reported only if the session ended, or if the client was cut off for long enough to give the
///   session up.
/// - The client reports the end of every session.
///
/// A watcher may skip states. Clients that crashed or closed report nothing.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    for (client, life) in &analysis.clients {
        let mut wrong = order(life);
        wrong.extend(sessions(analysis, life));
        wrong.extend(life.links.iter().filter_map(|link| unfounded(analysis, life, link)));
        wrong.extend(unseen(analysis, *client, life));
        found.extend(
            wrong.into_iter().map(|(at, what)| Violation::new(Invariant::K1, at, what).client(*client)),
        );
    }
}

type Wrong = (Duration, String);

fn order(life: &Timeline) -> Vec<Wrong> {
    let mut wrong = Vec::new();
    for pair in life.links.windows(2) {
        let (one, next) = (pair[0], pair[1]);
        let (from, to) = (one.generation, next.generation);
        if to < from {
            wrong.push((next.at, format!("went back from generation {from} to {to}:")));
        }
        if next.suspensions < one.suspensions {
            wrong.push((next.at, "reports fewer suspensions than before:".to_owned()));
        }
        if one.state == LinkState::Closed {
            wrong.push((next.at, format!("is {:?} after it was closed:", next.state)));
        }
        let live = matches!(next.state, LinkState::Connected | LinkState::Suspended | LinkState::ReadOnly);
        if one.state == LinkState::Lost && live && to <= from {
            wrong.push((next.at, format!("is {:?} again in generation {to}, which was lost:", next.state)));
        }
    }
    wrong
}

fn sessions(analysis: &Analysis<'_>, life: &Timeline) -> Vec<Wrong> {
    let mut wrong = Vec::new();
    let mut of_generation: BTreeMap<u64, i64> = BTreeMap::new();
    let mut of_session: BTreeMap<i64, u64> = BTreeMap::new();
    for link in &life.links {
        let Some(session) = link.session.filter(|session| *session != 0) else { continue };
        let generation = link.generation;
        if *of_generation.entry(generation).or_insert(session) != session
            || *of_session.entry(session).or_insert(generation) != generation
        {
            wrong.push((
                link.at,
                format!("has session {session:#x} in generation {generation}, but had another:"),
            ));
        }
        let opened = analysis.replay.sessions().get(&session).map(|session| session.opened.at);
        if opened.is_none_or(|opened| opened > link.at + analysis.tolerances().grain) {
            wrong.push((link.at, format!("has session {session:#x}, which was never opened:")));
        }
    }
    wrong
}

/// Finds a loss without a reason.
fn unfounded(analysis: &Analysis<'_>, life: &Timeline, link: &Link) -> Option<Wrong> {
    if link.state != LinkState::Lost {
        return None;
    }
    let session = link.session.or_else(|| life.session_of(link.generation))?;
    let ended = analysis.replay.sessions().get(&session).and_then(|session| session.ended);
    if ended.is_some_and(|(ended, _)| ended.at <= link.at + analysis.tolerances().grain) {
        return None;
    }
    if analysis.was_denied(session, link.at) {
        return None;
    }
    // A session is given up a whole timeout after the last possible lease, or a third of the timeout after
    // the process resumed.
    let third = analysis.facts().shortest_timeout / 3;
    let before = link.at.saturating_sub(Duration::from_nanos(1));
    let outages = life.apart.covered(before.saturating_sub(third), before);
    let given_up = outages >= third.saturating_sub(analysis.tolerances().scheduling);
    let since = link.at.saturating_sub(analysis.facts().shortest_timeout);
    let long = life.apart.covered(since, before)
        >= analysis.facts().shortest_timeout.saturating_sub(analysis.tolerances().scheduling);
    let woke = life.frozen.last_by(link.at).is_some_and(|frozen| frozen.until > since);
    let reason = given_up && (long || woke);
    (!reason).then(|| (link.at, format!("lost session {session:#x}, which still exists:")))
}

/// Finds ends of sessions that the client did not report.
fn unseen(analysis: &Analysis<'_>, client: ClientId, life: &Timeline) -> Vec<Wrong> {
    let tolerances = analysis.tolerances();
    let mut wrong = Vec::new();
    let mut first = BTreeMap::new();
    for link in &life.links {
        if let Some(session) = link.session {
            first.entry(session).or_insert(link.generation);
        }
    }
    for session in analysis.sessions_of(client) {
        let Some((ended, _)) = analysis.cause(session).filter(|(_, cause)| *cause != EndCause::Closed) else {
            continue;
        };
        let Some(generation) = first.get(&session) else { continue };
        let Some(due) = life.rough.quiet(ended.at, tolerances.notification + tolerances.reconnect) else {
            continue;
        };
        let due = life.awake(due, tolerances.scheduling);
        let seen = life.end_of(*generation).map(|link| link.at);
        let has_left = life.leaving().is_some_and(|has_left| has_left <= due);
        let late = seen.map_or_else(|| analysis.shows(due), |seen| seen > due);
        if late && !has_left {
            wrong.push((due, format!("does not report that session {session:#x} ended at {:?}:", ended.at)));
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use crate::event::{EventKind, FaultKind, LinkState};
    use crate::history::HistoryBuilder;
    use crate::journal::EndCause::{Expired, Forced};
    use crate::violation::Invariant::K1;

    fn report(
        history: &mut HistoryBuilder,
        state: LinkState,
        generation: u64,
        suspensions: u64,
        session: i64,
    ) {
        history.record(0, EventKind::Connection { state, generation, suspensions, session: Some(session) });
    }

    #[test]
    fn a_session_that_ends_is_reported_lost_before_the_next_one_begins() {
        let mut history = HistoryBuilder::new();
        history
            .at(100)
            .end_session(1, Forced)
            .at(110)
            .link(0, LinkState::Suspended)
            .at(150)
            .link(0, LinkState::Lost);
        history.at(300).connect(0, 9, 2).end(9_000).holds();
    }

    #[test]
    fn epochs_and_counts_do_not_go_back() {
        let mut history = HistoryBuilder::new();
        history.at(100).end_session(1, Forced).at(110).connect(0, 9, 2);
        report(&mut history, LinkState::Suspended, 1, 0, 1);
        history.end(200).breaks(K1);
        let mut history = HistoryBuilder::new();
        history.at(100);
        report(&mut history, LinkState::Suspended, 1, 1, 1);
        report(&mut history, LinkState::Connected, 1, 0, 1);
        history.end(200).breaks(K1);
    }

    #[test]
    fn a_lost_generation_does_not_come_back() {
        let mut history = HistoryBuilder::new();
        history.at(100).end_session(1, Forced).link(0, LinkState::Lost).at(110).link(0, LinkState::Connected);
        history.end(200).breaks(K1);
    }

    #[test]
    fn nothing_follows_closed() {
        let mut history = HistoryBuilder::good();
        history.at(500);
        report(&mut history, LinkState::Connected, 1, 0, 1);
        history.end(1_000).breaks(K1);
    }

    #[test]
    fn a_generation_has_one_session_that_was_opened() {
        let mut history = HistoryBuilder::new();
        history.at(100).connect(0, 9, 1).end(200).breaks(K1);
        let mut history = HistoryBuilder::new();
        history.at(100);
        report(&mut history, LinkState::Connected, 2, 0, 77);
        history.end(200).breaks(K1);
        let mut history = HistoryBuilder::new();
        history.at(100);
        report(&mut history, LinkState::Connected, 2, 0, 1);
        history.end(200).breaks(K1);
    }

    #[test]
    fn a_session_that_lives_is_not_lost() {
        let mut history = HistoryBuilder::new();
        history
            .at(5_000)
            .link(0, LinkState::Suspended)
            .at(5_500)
            .link(0, LinkState::Lost)
            .end(6_000)
            .breaks(K1);
    }

    #[test]
    fn a_session_that_lives_is_lost_if_a_server_denies_it() {
        let mut history = HistoryBuilder::new();
        history.at(5_000).fault(0, FaultKind::Denied).link(0, LinkState::Suspended);
        history.at(5_100).link(0, LinkState::Lost).end(6_000).holds();
    }

    #[test]
    fn a_client_that_is_cut_off_for_long_gives_its_session_up() {
        let cut = |lost_at: u64| {
            let mut history = HistoryBuilder::new();
            history.at(1_000).fault(0, FaultKind::Cut).at(3_000).link(0, LinkState::Suspended);
            history.at(lost_at).link(0, LinkState::Lost);
            history.end(lost_at + 100)
        };
        cut(11_000).holds();
        cut(4_000).breaks(K1);
    }

    #[test]
    fn a_session_end_is_noticed_once_a_client_reconnects() {
        let mut history = HistoryBuilder::new();
        history.at(1_000).fault(0, FaultKind::Cut).at(7_000).end_session(1, Expired);
        history.at(8_000).heal(0, FaultKind::Cut);
        history.clone().at(9_000).link(0, LinkState::Lost).end(20_000).holds();
        history.end(20_000).breaks(K1);
    }

    #[test]
    fn a_crashed_client_notices_nothing() {
        let mut history = HistoryBuilder::new();
        history.at(1_000).record(0, EventKind::Crashed).at(7_000).end_session(1, Expired).end(20_000).holds();
    }
}
