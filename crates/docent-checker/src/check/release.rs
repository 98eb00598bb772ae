use crate::analysis::{Analysis, End};
use crate::attempt_trace::{AttemptTrace, Deed};
use crate::journal_replay::NodeLife;
use crate::violation::{Found, Invariant, Violation};
use std::time::Duration;

/// **Release**: when `release` returns success, the node has been deleted. When `release` fails, the delete
/// continues in the background, and is done after the client was connected and healthy for a moment. A client
/// deletes the node of a guard only if the guard was given up or lost, or if the client closes.
///
/// The node of a ticket that tasks share may stay for the next task's turn. M6 checks that it is deleted in
/// the end.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    for trace in analysis.attempts.all() {
        let Some((_, node)) = analysis.node_of(trace) else { continue };
        let is_turn = trace.granted.is_some_and(|(_, grant)| grant.turn.is_some());
        let checks = [
            too_early(analysis, trace, node),
            unfinished(analysis, trace, node).filter(|_| !is_turn),
            forgotten(analysis, trace, node).filter(|_| !is_turn),
        ];
        found.extend(checks.into_iter().flatten().map(|(at, what)| {
            Violation::new(Invariant::M9, at, what)
                .attempt(trace.id())
                .client(trace.client)
                .path(trace.attempt.path.clone())
                .path(node.path.clone())
        }));
    }
}

/// Finds a node that was deleted while its guard was held.
fn too_early(
    analysis: &Analysis<'_>,
    trace: &AttemptTrace<'_>,
    node: &NodeLife,
) -> Option<(Duration, String)> {
    let deleted = node.deleted.filter(|deleted| analysis.end_of(node, *deleted) == End::Own)?;
    let at = deleted.when.at;
    let grain = analysis.tolerances().grain;
    let closing = analysis.leaving(trace.client);
    let allowed = [trace.until(), closing].into_iter().flatten().min();
    // M10 checks inner handles whose release deletes the node.
    let inner = trace.acts.iter().any(|act| act.deed == Deed::InnerReleased && act.at <= at + grain);
    let early = allowed.is_none_or(|allowed| allowed > at + grain) && !inner;
    early.then(|| (at, "its client deleted the node of a held guard:".to_owned()))
}

/// Finds a `release` that returned success while the node existed.
fn unfinished(
    analysis: &Analysis<'_>,
    trace: &AttemptTrace<'_>,
    node: &NodeLife,
) -> Option<(Duration, String)> {
    let (at, _) = trace.released.filter(|(_, ok)| *ok)?;
    let exists = node.deleted.is_none_or(|deleted| deleted.when.at > at + analysis.tolerances().grain);
    exists.then(|| (at, "release returned success while its node existed:".to_owned()))
}

/// Finds a `release` that was called, and whose node stays.
fn forgotten(
    analysis: &Analysis<'_>,
    trace: &AttemptTrace<'_>,
    node: &NodeLife,
) -> Option<(Duration, String)> {
    let releasing = trace.releasing?;
    let life = analysis.life(trace.client)?;
    if life.leaving().is_some() {
        return None;
    }
    let tolerances = analysis.tolerances();
    let due = life.apart.quiet(releasing, tolerances.cleanup)? + tolerances.round_trip + tolerances.grain;
    let late = match node.deleted {
        Some(deleted) => deleted.when.at > due,
        None => analysis.shows(due),
    };
    late.then(|| (due, "release was called, but its node stays:".to_owned()))
}

#[cfg(test)]
mod tests {
    use crate::event::{FaultKind, LinkState};
    use crate::history::HistoryBuilder;
    use crate::violation::Invariant::{M6, M9};

    #[test]
    fn success_means_that_the_node_was_deleted() {
        let (mut history, attempt) = HistoryBuilder::of_holder();
        history.at(200).releasing(attempt);
        history.clone().at(203).delete(attempt).at(206).released(attempt, true).end(1_000).holds();
        history.at(206).released(attempt, true).at(300).delete(attempt).end(1_000).breaks(M9);
    }

    #[test]
    fn a_failed_release_continues_in_the_background() {
        let failed = |deleted: bool| {
            let (mut history, attempt) = HistoryBuilder::of_holder();
            history
                .at(200)
                .fault(0, FaultKind::Cut)
                .releasing(attempt)
                .at(2_200)
                .link(0, LinkState::Suspended);
            history.at(3_000).released(attempt, false).at(4_000).heal(0, FaultKind::Cut);
            history.link(0, LinkState::Connected).at(4_100);
            if deleted {
                history.delete(attempt);
            }
            history.end(9_000)
        };
        failed(true).holds();
        assert_eq!(failed(false).broken(), [M6, M9]);
    }

    #[test]
    fn the_node_of_a_guard_that_is_held_is_not_deleted() {
        let (mut history, attempt) = HistoryBuilder::of_holder();
        history.at(200).delete(attempt).end(1_000).breaks(M9);
    }
}
