use crate::analysis::{Analysis, End};
use crate::attempt_trace::{AttemptTrace, Deed};
use crate::event::Handle;
use crate::violation::{Found, Invariant, Violation};
use std::time::Duration;

/// **Reentrancy**: releasing one of several handles keeps the node, and releasing the last one gives it up. A
/// lost hold is not re-entered: neither after the loss is known, nor in a later generation.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    for trace in analysis.attempts.all().filter(|trace| trace.granted.is_some()) {
        let mut wrong = counted(trace);
        wrong.extend(reentered_after_loss(analysis, trace));
        wrong.extend(taken_by_an_inner_one(analysis, trace));
        found.extend(wrong.into_iter().map(|(at, what)| {
            Violation::new(Invariant::M10, at, what)
                .attempt(trace.id())
                .client(trace.client)
                .path(trace.attempt.path.clone())
        }));
    }
}

fn counted(trace: &AttemptTrace<'_>) -> Vec<(Duration, String)> {
    let mut handles = 1_u32;
    let mut wrong = Vec::new();
    for act in &trace.acts {
        match act.deed {
            Deed::Reentered(Handle::Given) => handles += 1,
            Deed::InnerReleased if handles > 1 => handles -= 1,
            Deed::InnerReleased => {
                wrong.push((act.at, "an inner handle was released, but none exists:".to_owned()));
            }
            Deed::Releasing | Deed::Dropped if handles > 1 => {
                wrong.push((act.at, format!("it was given up with {handles} handles left:")));
            }
            _ => {}
        }
    }
    wrong
}

fn reentered_after_loss(analysis: &Analysis<'_>, trace: &AttemptTrace<'_>) -> Option<(Duration, String)> {
    let generation_end = analysis.generation_end(trace);
    let mut lost = false;
    for act in &trace.acts {
        if act.deed == Deed::Reentered(Handle::Given) {
            if lost {
                return Some((act.at, "re-entered after it was known to be lost:".to_owned()));
            }
            if generation_end.is_some_and(|end| end.index < act.index) {
                return Some((
                    act.at,
                    "re-entered after the end of the generation in which it was granted:".to_owned(),
                ));
            }
        }
        lost |= act.deed.reports_held() == Some(false);
    }
    None
}

fn taken_by_an_inner_one(analysis: &Analysis<'_>, trace: &AttemptTrace<'_>) -> Option<(Duration, String)> {
    let (_, node) = analysis.node_of(trace)?;
    let deleted = node.deleted.filter(|deleted| analysis.end_of(node, *deleted) == End::Own)?;
    let at = deleted.when.at + analysis.tolerances().grain;
    let inner = trace.acts.iter().any(|act| act.deed == Deed::InnerReleased && act.at <= at);
    let leaving = analysis.leaving(trace.client);
    let has_ended = [trace.until(), leaving].into_iter().flatten().min().is_some_and(|end| end <= at);
    (inner && !has_ended)
        .then(|| (deleted.when.at, "the release of an inner handle deleted the node:".to_owned()))
}

#[cfg(test)]
mod tests {
    use crate::event::{AttemptId, EventKind, Handle, LinkState};
    use crate::history::HistoryBuilder;
    use crate::journal::EndCause::Forced;
    use crate::violation::Invariant::M10;

    fn held_twice() -> (HistoryBuilder, AttemptId) {
        let mut history = HistoryBuilder::new();
        let attempt = history.at(100).begin(0);
        history.create(attempt).at(110).grant(attempt).reentered(attempt, Handle::Given);
        (history, attempt)
    }

    #[test]
    fn the_last_handle_gives_up_the_node() {
        let (mut history, attempt) = held_twice();
        history
            .at(120)
            .record(0, EventKind::InnerReleased(attempt))
            .at(130)
            .releasing(attempt)
            .delete(attempt);
        history.released(attempt, true).end(1_000).holds();
    }

    #[test]
    fn an_inner_handle_does_not_give_up_the_node() {
        let (mut history, attempt) = held_twice();
        history.at(120).record(0, EventKind::InnerReleased(attempt)).at(125).delete(attempt);
        history.at(130).dropped(attempt).end(1_000).breaks(M10);
    }

    #[test]
    fn handles_are_counted() {
        let (mut history, attempt) = held_twice();
        history.clone().at(120).dropped(attempt).delete(attempt).end(1_000).breaks(M10);
        history
            .at(120)
            .record(0, EventKind::InnerReleased(attempt))
            .record(0, EventKind::InnerReleased(attempt));
        history.at(130).dropped(attempt).delete(attempt).end(1_000).breaks(M10);
    }

    #[test]
    fn a_lost_hold_is_not_reentered() {
        let (mut history, attempt) = held_twice();
        history.at(200).end_session(1, Forced).at(202).lost(attempt);
        history.clone().reentered(attempt, Handle::Lost).link(0, LinkState::Lost).end(300).holds();
        history.reentered(attempt, Handle::Given).link(0, LinkState::Lost).end(300).breaks_also(M10);
    }

    #[test]
    fn a_hold_belongs_to_its_generation() {
        let (mut history, attempt) = held_twice();
        history.at(200).end_session(1, Forced).at(202).link(0, LinkState::Lost).connect(0, 9, 2);
        history.at(210).reentered(attempt, Handle::Given).lost(attempt).end(300).breaks_also(M10);
    }
}
