use crate::analysis::{Analysis, End};
use crate::attempt_trace::{Act, AttemptTrace, Deed};
use crate::journal_replay::NodeLife;
use crate::violation::{Found, Invariant, Violation};
use std::time::Duration;

/// **Loss** is reported once, in time, permanently, and only with a reason.
///
/// - `lost()` resolves once. After that, or after any other report that a guard is not held, nothing reports
///   that the guard is held.
/// - After the server has expired a guard's session, nothing reports the guard as held, or uses it. This
///   includes a process that was paused, at its next check. The same applies after the end of the guard's
///   generation, and, once a notification must have arrived, after a third party deleted the node.
/// - A holder is notified in time: before the session expires, or as soon as its process resumes.
/// - No holder is notified while its node exists and its link was healthy for a whole session timeout.
/// - The node of a lost guard exists until the guard is dropped, or until a margin has passed in which the
///   guard's work stops. A client that closes allows at most a quarter of the operation timeout for that.
///
/// Resources that are held together are lost when one of them is. Assumed: a clock that always runs with the
/// world, a timeout of at least four ticks, `lost()` awaited for every guard, and `is_held` called right
/// before each use. A use may still follow a pause that began after that call.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    for trace in analysis.attempts.all().filter(|trace| trace.granted.is_some()) {
        let closing = analysis.life(trace.client).and_then(|life| life.closing);
        let mut wrong = contradictory_reports(trace, closing);
        wrong.extend(lost_without_cause(analysis, trace));
        wrong.extend(held_after_generation(analysis, trace));
        if let Some((_, node)) = analysis.node_of(trace) {
            wrong.extend(reported_held_late(analysis, trace, node));
            wrong.extend(notified_late(analysis, trace, node));
            wrong.extend(deleted_early(analysis, trace, node));
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

/// Finds a guard that is held again after it was lost, or that is lost twice. While a shutdown stops work,
/// the work's token is cancelled and the term is still held.
fn contradictory_reports(trace: &AttemptTrace<'_>, closing: Option<Duration>) -> Vec<Wrong> {
    let mut wrong = Vec::new();
    let mut lost: Option<Act> = None;
    let mut reported_lost = false;
    for act in &trace.acts {
        let is_stopping = closing.is_some_and(|closing| closing <= act.at);
        if matches!(act.deed, Deed::HeldChecked { held: true, cancelled: true }) && !is_stopping {
            wrong.push((act.at, "reported as held with its token cancelled:".to_owned()));
        }
        if reported_lost && act.deed == Deed::Lost {
            wrong.push((act.at, "reported as lost a second time:".to_owned()));
        }
        reported_lost |= act.deed == Deed::Lost;
        match (lost, act.deed.reports_held()) {
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

/// Finds a loss that was reported without a reason.
fn lost_without_cause(analysis: &Analysis<'_>, trace: &AttemptTrace<'_>) -> Option<Wrong> {
    let lost = trace.learned_lost()?;
    let life = analysis.life(trace.client)?;
    let well = life.apart.spare(lost.saturating_sub(analysis.facts().timeout), lost);
    let by_then = |trace: &AttemptTrace<'_>| {
        let (_, node) = analysis.node_of(trace)?;
        Some(node.deleted.is_none_or(|deleted| deleted.when.at > lost + analysis.tolerances().grain))
    };
    let has_node =
        by_then(trace)? && analysis.attempts.together(trace.id()).all(|other| by_then(other) != Some(false));
    (well && has_node && trace.given_up().is_none_or(|ended| ended > lost))
        .then(|| (lost, "reported as lost without a fault:".to_owned()))
}

/// Finds a report of a guard after the client had reported the end of the guard's generation.
fn held_after_generation(analysis: &Analysis<'_>, trace: &AttemptTrace<'_>) -> Option<Wrong> {
    let end = analysis.generation_end(trace)?;
    let act = trace.acts.iter().find(|act| act.index > end.index && act.deed.reports_held() == Some(true))?;
    Some((act.at, format!("reported as held by {:?} after its generation ended:", act.deed)))
}

/// Finds a guard that was reported as held, or used, too late.
fn reported_held_late(analysis: &Analysis<'_>, trace: &AttemptTrace<'_>, node: &NodeLife) -> Option<Wrong> {
    let deleted = node.deleted?;
    let due = analysis.notice(trace.client, node)?;
    let end = analysis.end_of(node, deleted);
    let last = match end {
        End::Expired => deleted.when.at + analysis.tolerances().grain,
        End::ThirdParty | End::Own => due,
    };
    let late = |act: &&Act| match act.deed {
        Deed::Used(_) => act.at > due,
        deed => deed.reports_held() == Some(true) && act.at > last,
    };
    let act = trace.acts.iter().find(late)?;
    let why = if end == End::Expired { "its session expired" } else { "its node was deleted" };
    Some((act.at, format!("{:?} {:?} after {why}:", act.deed, act.at.saturating_sub(deleted.when.at))))
}

/// Finds a holder that was not notified in time.
fn notified_late(analysis: &Analysis<'_>, trace: &AttemptTrace<'_>, node: &NodeLife) -> Option<Wrong> {
    let deleted = node.deleted?;
    let (granted, _) = trace.granted?;
    let mut due = analysis.notice(trace.client, node)?;
    if analysis.end_of(node, deleted) == End::ThirdParty {
        due = due.max(granted + analysis.tolerances().notification);
    }
    let late = match trace.until() {
        Some(until) => until > due,
        None => analysis.shows(due),
    };
    let reported =
        trace.until().map_or_else(|| "never".to_owned(), |until| format!("at {:.4}", until.as_secs_f64()));
    late.then(|| {
        (due, format!("its node was deleted at {:.4}, reported {reported}:", deleted.when.at.as_secs_f64()))
    })
}

/// Finds a node of a lost guard that its client deleted before the guard's work had time to stop.
fn deleted_early(analysis: &Analysis<'_>, trace: &AttemptTrace<'_>, node: &NodeLife) -> Option<Wrong> {
    let deleted = node.deleted.filter(|deleted| analysis.end_of(node, *deleted) == End::Own)?;
    let lost = trace.learned_lost()?;
    let (tolerances, life) = (analysis.tolerances(), analysis.life(trace.client)?);
    let at = deleted.when.at + tolerances.grain;
    let closes = life.closing.is_some_and(|closing| closing <= at);
    let margin = match analysis.facts().margin() {
        margin if closes => margin.min(tolerances.operation / 4),
        margin => margin,
    };
    let ended = [trace.given_up(), life.crashed, life.closed].into_iter().flatten().any(|ended| ended <= at);
    let early = lost <= at && at + tolerances.scheduling < lost + margin;
    (early && !ended).then(|| {
        let what = format!(
            "its client deleted its node {:?} after it was lost:",
            deleted.when.at.saturating_sub(lost)
        );
        (deleted.when.at, what)
    })
}

#[cfg(test)]
mod tests {
    use crate::event::{AttemptId, EventKind, FaultKind, Handle, LinkState};
    use crate::history::HistoryBuilder;
    use crate::journal::EndCause::{Closed, Expired, Forced};
    use crate::violation::Invariant::M11;

    /// The client is cut off from 200 ms on; its session expires at 6.5 s.
    fn cut() -> (HistoryBuilder, AttemptId) {
        let (mut history, attempt) = HistoryBuilder::of_holder();
        history.at(200).fault(0, FaultKind::Cut);
        (history, attempt)
    }

    fn expired(history: &mut HistoryBuilder) -> &mut HistoryBuilder {
        history.at(6_510).end_session(1, Expired)
    }

    #[test]
    fn a_client_that_resumes_just_before_its_lease_ends_gets_time_to_notice() {
        let lost = |at: u64| {
            let mut history = HistoryBuilder::new();
            let attempt = history.at(100).begin(0);
            history.create(attempt).at(110).grant(attempt);
            history.at(200).fault(0, FaultKind::Cut).at(1_100).fault(0, FaultKind::Frozen);
            let node = history.node(attempt);
            history.at(1_200).delete_path(&node, 4).at(7_180).heal(0, FaultKind::Frozen);
            history.at(at).lost(attempt).dropped(attempt).at(8_000).heal(0, FaultKind::Cut);
            history.end(9_000)
        };
        lost(7_270).holds();
        lost(7_300).breaks(M11);
    }

    #[test]
    fn a_client_that_is_cut_off_loses_its_guard_before_its_session_expires() {
        let (mut history, attempt) = cut();
        history.at(4_100).held_checked(attempt, true).at(4_110).lost(attempt).held_checked(attempt, false);
        expired(&mut history).end(9_000).holds();
        let (mut history, attempt) = cut();
        expired(&mut history).at(6_600).lost(attempt).end(9_000).breaks(M11);
        let (mut history, _) = cut();
        expired(&mut history).end(9_000).breaks(M11);
    }

    #[test]
    fn a_head_start_can_be_required() {
        let (mut history, attempt) = cut();
        history.run.facts.tolerances.head_start = std::time::Duration::from_secs(1);
        history.at(6_000).lost(attempt);
        expired(&mut history).end(9_000).breaks(M11);
    }

    #[test]
    fn a_guard_that_is_reported_held_after_its_session_expired_is_caught() {
        let reports_held: [fn(AttemptId) -> EventKind; 3] = [
            |attempt| EventKind::HeldChecked { attempt, held: true, cancelled: false },
            |attempt| EventKind::Verified { attempt, held: Some(true) },
            |attempt| EventKind::Reentered(attempt, Handle::Given),
        ];
        for kind in reports_held {
            let (mut history, attempt) = HistoryBuilder::of_holder();
            history.at(200).fault(0, FaultKind::Frozen);
            expired(&mut history).at(9_000).heal(0, FaultKind::Frozen);
            history.clone().lost(attempt).end(9_100).holds();
            history.record(0, kind(attempt)).at(9_001).lost(attempt);
            if matches!(kind(attempt), EventKind::Reentered(..)) {
                history.record(0, EventKind::InnerReleased(attempt));
            }
            history.end(9_100).breaks(M11);
        }
    }

    #[test]
    fn a_late_use_is_excused_only_right_after_a_pause() {
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
    fn a_loss_is_reported_once_and_is_final() {
        let (mut history, attempt) = cut();
        history.at(4_100).lost(attempt);
        history.clone().lost(attempt).end(4_200).breaks(M11);
        history.clone().held_checked(attempt, true).end(4_200).breaks(M11);
        history.record(0, EventKind::Verified { attempt, held: Some(true) }).end(4_200).breaks(M11);
        let (mut history, attempt) = cut();
        history
            .at(4_100)
            .held_checked(attempt, false)
            .at(4_300)
            .held_checked(attempt, true)
            .end(4_400)
            .breaks(M11);
    }

    #[test]
    fn a_cancelled_token_and_a_held_guard_contradict_each_other() {
        let (mut history, attempt) = cut();
        history
            .at(300)
            .record(0, EventKind::HeldChecked { attempt, held: true, cancelled: true })
            .end(400)
            .breaks(M11);
    }

    #[test]
    fn the_end_of_the_generation_is_the_end_of_its_guards() {
        let (mut history, attempt) = HistoryBuilder::of_holder();
        history.at(200).end_session(1, Forced).at(202).link(0, LinkState::Lost).held_checked(attempt, true);
        history.at(203).lost(attempt).end(400).breaks(M11);
    }

    #[test]
    fn the_deletion_of_its_node_is_noticed_by_notification() {
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
    fn a_loss_without_a_cause_is_caught() {
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
    fn a_session_is_not_closed_while_its_lost_guards_exist() {
        let (mut history, attempt) = cut();
        history.at(4_100).lost(attempt);
        history.clone().at(4_200).dropped(attempt).at(4_300).end_session(1, Closed).end(4_400).holds();
        history.at(4_300).end_session(1, Closed).end(4_400).breaks(M11);
    }

    #[test]
    fn the_work_of_a_guard_that_a_close_ends_gets_a_margin_to_stop() {
        let closed = |at: u64, dropped: Option<u64>| {
            let (mut history, attempt) = HistoryBuilder::of_holder();
            history.at(3_000).record(0, EventKind::Closing).at(3_010).lost(attempt);
            if let Some(dropped) = dropped {
                history.at(dropped).dropped(attempt);
            }
            history.at(at).end_session(1, Closed).link(0, LinkState::Closed);
            history.at(at + 10).record(0, EventKind::Closed);
            history.end(12_000)
        };
        closed(5_010, None).holds();
        closed(3_210, Some(3_200)).holds();
        closed(3_200, None).breaks(M11);
    }
}
