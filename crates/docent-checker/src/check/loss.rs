use crate::analysis::{Analysis, End};
use crate::attempt_trace::{Act, AttemptTrace, Deed};
use crate::journal_replay::NodeLife;
use crate::violation::{Found, Invariant, Violation};
use std::time::Duration;

/// **Loss** is told once, in time, for good, and not for nothing.
///
/// - `lost()` resolves once. After it, or any other word that a guard is not held, nothing says that it is.
/// - Nobody says that a guard is held, or uses it, when the server has let its session run out: not even a
///   process that was frozen, at its next look. Nor when its generation is over, nor, later than news take,
///   when others took it away.
/// - A holder is told by then: before the session runs out, or as soon as the process goes on.
/// - Nobody is told while the node is there and the link was well for a whole session timeout.
/// - The node of a lost guard stays until the guard is dropped or a margin is over, in which its work stops.
///   A client that closes gives it at most a quarter of the time that an operation may take.
///
/// Things that go together are lost when one of them is. Assumed: a clock that runs whenever the world does,
/// a timeout of at least four ticks, `lost()` awaited for every guard, and `is_held` asked right before each
/// use. A use may still follow a freeze that began after it was asked.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    for trace in analysis.attempts.all().filter(|trace| trace.granted.is_some()) {
        let closing = analysis.life(trace.client).and_then(|life| life.closing);
        let mut wrong = unsaid(trace, closing);
        wrong.extend(for_nothing(analysis, trace));
        wrong.extend(after_its_generation(analysis, trace));
        if let Some((_, node)) = analysis.node_of(trace) {
            wrong.extend(said_late(analysis, trace, node));
            wrong.extend(told_late(analysis, trace, node));
            wrong.extend(taken_early(analysis, trace, node));
        }
        found.extend(wrong.into_iter().map(|(at, what)| {
            Violation::new(Invariant::M11, at, what)
                .attempt(trace.id())
                .client(trace.client)
                .path(trace.attempt.path.clone())
                .path(trace.granted.map(|(_, grant)| grant.node.clone()).unwrap_or_default())
        }));
    }
}

type Wrong = (Duration, String);

/// It was lost, and is held again; or lost twice. Work that a shutdown stops is told by its token, and leads
/// meanwhile.
fn unsaid(trace: &AttemptTrace<'_>, closing: Option<Duration>) -> Vec<Wrong> {
    let mut wrong = Vec::new();
    let mut lost: Option<Act> = None;
    let mut told = false;
    for act in &trace.acts {
        let told_to_stop = closing.is_some_and(|closing| closing <= act.at);
        if matches!(act.deed, Deed::Looked { held: true, cancelled: true }) && !told_to_stop {
            wrong.push((act.at, "said to be held with its token cancelled:".to_owned()));
        }
        if told && act.deed == Deed::Lost {
            wrong.push((act.at, "told to be lost a second time:".to_owned()));
        }
        told |= act.deed == Deed::Lost;
        match (lost, act.deed.says()) {
            (None, Some(false)) => lost = Some(*act),
            (Some(lost), Some(true)) => {
                wrong.push((
                    act.at,
                    format!("held again by {:?}, after {:?} at {:?}:", act.deed, lost.deed, lost.at),
                ));
            }
            _ => {}
        }
    }
    wrong
}

/// It was told to be lost without a reason.
fn for_nothing(analysis: &Analysis<'_>, trace: &AttemptTrace<'_>) -> Option<Wrong> {
    let lost = trace.known_lost()?;
    let life = analysis.life(trace.client)?;
    let well = life.apart.spare(lost.saturating_sub(analysis.facts().timeout), lost);
    let by_then = |trace: &AttemptTrace<'_>| {
        let (_, node) = analysis.node_of(trace)?;
        Some(node.gone.is_none_or(|gone| gone.when.at > lost + analysis.tolerances().grain))
    };
    let there =
        by_then(trace)? && analysis.attempts.together(trace.id()).all(|other| by_then(other) != Some(false));
    (well && there && trace.given_up().is_none_or(|over| over > lost))
        .then(|| (lost, "told to be lost while all was well:".to_owned()))
}

/// Something was said by a guard of a generation that its client knew to be over.
fn after_its_generation(analysis: &Analysis<'_>, trace: &AttemptTrace<'_>) -> Option<Wrong> {
    let over = analysis.generation_end(trace)?;
    let act = trace.acts.iter().find(|act| act.index > over.index && act.deed.says() == Some(true))?;
    Some((act.at, format!("said to be held by {:?} after its generation was over:", act.deed)))
}

/// Somebody said that it is held, or used it, and could not have.
fn said_late(analysis: &Analysis<'_>, trace: &AttemptTrace<'_>, node: &NodeLife) -> Option<Wrong> {
    let gone = node.gone?;
    let due = analysis.notice(trace.client, node)?;
    let end = analysis.end_of(node, gone);
    let last = match end {
        End::Expired => gone.when.at + analysis.tolerances().grain,
        End::Others | End::Own => due,
    };
    let late = |act: &&Act| match act.deed {
        Deed::Used(_) => act.at > due,
        deed => deed.says() == Some(true) && act.at > last,
    };
    let act = trace.acts.iter().find(late)?;
    let why = if end == End::Expired { "its session had run out" } else { "its node was gone" };
    Some((act.at, format!("{:?} {:?} after {why}:", act.deed, act.at.saturating_sub(gone.when.at))))
}

/// A holder was not told in time.
fn told_late(analysis: &Analysis<'_>, trace: &AttemptTrace<'_>, node: &NodeLife) -> Option<Wrong> {
    let gone = node.gone?;
    let (granted, _) = trace.granted?;
    let mut due = analysis.notice(trace.client, node)?;
    if analysis.end_of(node, gone) == End::Others {
        due = due.max(granted + analysis.tolerances().news);
    }
    let late = match trace.until() {
        Some(until) => until > due,
        None => analysis.shows(due),
    };
    let told =
        trace.until().map_or_else(|| "never".to_owned(), |until| format!("at {:.4}", until.as_secs_f64()));
    late.then(|| {
        (due, format!("its node was gone at {:.4}, which was told {told}:", gone.when.at.as_secs_f64()))
    })
}

/// Its client took the node of a lost guard before the guard's work had time to stop.
fn taken_early(analysis: &Analysis<'_>, trace: &AttemptTrace<'_>, node: &NodeLife) -> Option<Wrong> {
    let gone = node.gone.filter(|gone| analysis.end_of(node, *gone) == End::Own)?;
    let lost = trace.known_lost()?;
    let (tolerances, life) = (analysis.tolerances(), analysis.life(trace.client)?);
    let at = gone.when.at + tolerances.grain;
    let closes = life.closing.is_some_and(|closing| closing <= at);
    let margin = match analysis.facts().margin() {
        margin if closes => margin.min(tolerances.operation / 4),
        margin => margin,
    };
    let over = [trace.given_up(), life.crashed, life.closed].into_iter().flatten().any(|over| over <= at);
    let early = lost <= at && at + tolerances.scheduling < lost + margin;
    (early && !over).then(|| {
        let what =
            format!("its client took its node {:?} after it was lost:", gone.when.at.saturating_sub(lost));
        (gone.when.at, what)
    })
}

#[cfg(test)]
mod tests {
    use crate::event::{AttemptId, EventKind, FaultKind, Handle, LinkState};
    use crate::history::HistoryBuilder;
    use crate::journal::EndCause::{Closed, Expired, Forced};
    use crate::violation::Invariant::M11;

    /// Cut off from 200 on; the session runs out at 6.5 s.
    fn cut() -> (HistoryBuilder, AttemptId) {
        let (mut history, attempt) = HistoryBuilder::of_holder();
        history.at(200).fault(0, FaultKind::Cut);
        (history, attempt)
    }

    fn expired(history: &mut HistoryBuilder) -> &mut HistoryBuilder {
        history.at(6_510).end_session(1, Expired)
    }

    #[test]
    fn who_woke_up_just_before_the_lease_was_over_gets_the_time_to_look() {
        let told = |at: u64| {
            let mut history = HistoryBuilder::new();
            let attempt = history.at(100).begin(0);
            history.create(attempt).at(110).grant(attempt);
            history.at(200).fault(0, FaultKind::Cut).at(1_100).fault(0, FaultKind::Frozen);
            let node = history.node(attempt);
            history.at(1_200).delete_path(&node, 4).at(7_180).heal(0, FaultKind::Frozen);
            history.at(at).lost(attempt).dropped(attempt).at(8_000).heal(0, FaultKind::Cut);
            history.end(9_000)
        };
        told(7_270).holds();
        told(7_300).breaks(M11);
    }

    #[test]
    fn who_is_cut_off_knows_before_its_session_runs_out() {
        let (mut history, attempt) = cut();
        history.at(4_100).looked(attempt, true).at(4_110).lost(attempt).looked(attempt, false);
        expired(&mut history).end(9_000).holds();
        let (mut history, attempt) = cut();
        expired(&mut history).at(6_600).lost(attempt).end(9_000).breaks(M11);
        let (mut history, _) = cut();
        expired(&mut history).end(9_000).breaks(M11);
    }

    #[test]
    fn a_head_start_can_be_asked_for() {
        let (mut history, attempt) = cut();
        history.run.facts.tolerances.head_start = std::time::Duration::from_secs(1);
        history.at(6_000).lost(attempt);
        expired(&mut history).end(9_000).breaks(M11);
    }

    #[test]
    fn nobody_says_held_when_the_session_has_run_out() {
        let says: [fn(AttemptId) -> EventKind; 3] = [
            |attempt| EventKind::Looked { attempt, held: true, cancelled: false },
            |attempt| EventKind::Verified { attempt, held: Some(true) },
            |attempt| EventKind::Reentered(attempt, Handle::Given),
        ];
        for kind in says {
            let (mut history, attempt) = HistoryBuilder::of_holder();
            history.at(200).fault(0, FaultKind::Frozen);
            expired(&mut history).at(9_000).heal(0, FaultKind::Frozen);
            history.clone().lost(attempt).end(9_100).holds();
            history.tell(0, kind(attempt)).at(9_001).lost(attempt);
            if matches!(kind(attempt), EventKind::Reentered(..)) {
                history.tell(0, EventKind::InnerReleased(attempt));
            }
            history.end(9_100).breaks(M11);
        }
    }

    #[test]
    fn a_use_may_follow_a_freeze_but_nothing_else() {
        let (mut history, attempt) = HistoryBuilder::of_holder();
        history.at(200).fault(0, FaultKind::Frozen);
        expired(&mut history).at(9_000).heal(0, FaultKind::Frozen);
        history.clone().used(attempt).lost(attempt).end(9_100).holds();
        history.lost(attempt).at(9_500).used(attempt).end(9_600).breaks(M11);
        let (mut history, attempt) = cut();
        history.at(4_000).lost(attempt);
        expired(&mut history).at(6_600).used(attempt).end(9_000).breaks(M11);
    }

    #[test]
    fn lost_is_told_once_and_for_good() {
        let (mut history, attempt) = cut();
        history.at(4_100).lost(attempt);
        history.clone().lost(attempt).end(4_200).breaks(M11);
        history.clone().looked(attempt, true).end(4_200).breaks(M11);
        history.tell(0, EventKind::Verified { attempt, held: Some(true) }).end(4_200).breaks(M11);
        let (mut history, attempt) = cut();
        history.at(4_100).looked(attempt, false).at(4_300).looked(attempt, true).end(4_400).breaks(M11);
    }

    #[test]
    fn a_cancelled_token_and_a_held_guard_contradict_each_other() {
        let (mut history, attempt) = cut();
        history
            .at(300)
            .tell(0, EventKind::Looked { attempt, held: true, cancelled: true })
            .end(400)
            .breaks(M11);
    }

    #[test]
    fn the_end_of_the_generation_is_the_end_of_its_guards() {
        let (mut history, attempt) = HistoryBuilder::of_holder();
        history.at(200).end_session(1, Forced).at(202).link(0, LinkState::Lost).looked(attempt, true);
        history.at(203).lost(attempt).end(400).breaks(M11);
    }

    #[test]
    fn of_what_others_take_away_it_knows_as_news() {
        let taken = |lost_at: u64| {
            let (mut history, attempt) = HistoryBuilder::of_holder();
            let node = history.node(attempt);
            history.at(3_000).delete_path(&node, 7).at(lost_at).lost(attempt);
            history.end(9_000)
        };
        taken(3_150).holds();
        taken(3_300).breaks(M11);
    }

    #[test]
    fn nothing_is_lost_for_nothing() {
        let (mut history, attempt) = HistoryBuilder::of_holder();
        history.clone().at(7_000).lost(attempt).end(8_000).breaks(M11);
        history.at(6_000).fault(0, FaultKind::Slow).at(7_000).lost(attempt).end(8_000).holds();
    }

    #[test]
    fn the_work_of_a_lost_guard_gets_a_margin_to_stop() {
        let deleted = |at: u64| {
            let (mut history, attempt) = cut();
            history.at(4_100).lost(attempt).at(4_200).heal(0, FaultKind::Cut).at(at).delete(attempt);
            history.end(12_000)
        };
        deleted(6_100).holds();
        deleted(5_000).breaks(M11);
    }

    #[test]
    fn a_session_is_not_closed_while_its_lost_guards_live() {
        let (mut history, attempt) = cut();
        history.at(4_100).lost(attempt);
        history.clone().at(4_200).dropped(attempt).at(4_300).end_session(1, Closed).end(4_400).holds();
        history.at(4_300).end_session(1, Closed).end(4_400).breaks(M11);
    }

    #[test]
    fn the_work_of_a_guard_that_a_close_takes_away_gets_a_margin_to_stop() {
        let closed = |at: u64, dropped: Option<u64>| {
            let (mut history, attempt) = HistoryBuilder::of_holder();
            history.at(3_000).tell(0, EventKind::Closing).at(3_010).lost(attempt);
            if let Some(dropped) = dropped {
                history.at(dropped).dropped(attempt);
            }
            history.at(at).end_session(1, Closed).link(0, LinkState::Closed);
            history.at(at + 10).tell(0, EventKind::Closed);
            history.end(12_000)
        };
        closed(5_010, None).holds();
        closed(3_210, Some(3_200)).holds();
        closed(3_200, None).breaks(M11);
    }
}
