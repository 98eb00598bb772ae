use crate::analysis::Analysis;
use crate::attempt_trace::{AttemptTrace, Deed};
use crate::event::{AttemptId, Use};
use crate::violation::{Found, Invariant, Violation};
use std::collections::HashMap;

/// **Fenced exclusion**: among the uses that a fenced resource accepts, fences never decrease, and each fence
/// belongs to one acquisition.
///
/// Assumed: one resource for each path, which all guards of the path use. This holds whatever is paused, cut
/// off or late.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    let mut uses: Vec<(usize, &AttemptTrace<'_>, Use)> = Vec::new();
    let mut owners: HashMap<(&str, u64), AttemptId> = HashMap::new();
    for trace in analysis.attempts.all() {
        let Some((at, grant)) = trace.granted else { continue };
        let used = trace.acts.iter().filter_map(|act| match act.deed {
            Deed::Used(used) => Some((act.index, trace, used)),
            _ => None,
        });
        uses.extend(used);
        let Some(fence) = grant.fence.filter(|_| trace.is_exclusive()) else { continue };
        if let Some(other) = owners.insert((&trace.attempt.path, fence), trace.id()) {
            let what = format!("two acquisitions have the fence {fence}:");
            found.push(violation(trace, at, what).attempt(other));
        }
    }
    uses.sort_by_key(|(index, ..)| *index);
    let mut highest: HashMap<&str, (u64, AttemptId)> = HashMap::new();
    for (index, trace, used) in uses {
        let at = analysis.run.events[index].at;
        let fence = trace.granted.and_then(|(_, grant)| grant.fence);
        if fence != Some(used.fence) {
            let what = format!("used with the fence {}, granted with {fence:?}:", used.fence);
            found.push(violation(trace, at, what));
        }
        let (top, by) = *highest.entry(&trace.attempt.path).or_insert((used.fence, trace.id()));
        match (used.accepted, used.fence < top) {
            (true, true) => {
                let what = format!("the fence {} was accepted after {top}:", used.fence);
                found.push(violation(trace, at, what).attempt(by));
            }
            (false, false) => {
                let what =
                    format!("the fence {} was refused after {top}: not a fenced resource:", used.fence);
                found.push(violation(trace, at, what).attempt(by));
            }
            _ => {}
        }
        if used.fence > top {
            highest.insert(&trace.attempt.path, (used.fence, trace.id()));
        }
    }
}

fn violation(trace: &AttemptTrace<'_>, at: std::time::Duration, what: String) -> Violation {
    Violation::new(Invariant::M1, at, what)
        .attempt(trace.id())
        .client(trace.client)
        .path(trace.attempt.path.clone())
}

#[cfg(test)]
mod tests {
    use crate::event::{AttemptId, FaultKind};
    use crate::history::HistoryBuilder;
    use crate::journal::EndCause::Expired;
    use crate::violation::Invariant::{M1, M4};

    /// A paused holder resumes and uses what the next holder holds.
    fn frozen() -> (HistoryBuilder, AttemptId, AttemptId) {
        let mut history = HistoryBuilder::new();
        let first = history.at(100).begin(0);
        history.create(first).at(110).grant(first).used(first);
        let second = history.at(120).begin(1);
        history.create(second).at(200).fault(0, FaultKind::Frozen).at(6_500).end_session(1, Expired);
        history.at(6_510).grant(second).used(second).at(9_000).heal(0, FaultKind::Frozen);
        (history, first, second)
    }

    fn end(history: &mut HistoryBuilder, first: AttemptId) -> HistoryBuilder {
        history.lost(first).at(9_001).dropped(first).end(9_010)
    }

    #[test]
    fn a_late_use_that_is_rejected_is_right() {
        let (mut history, first, _) = frozen();
        let fence = 5;
        history.used_with(first, fence, false);
        end(&mut history, first).holds();
    }

    #[test]
    fn a_late_use_that_is_accepted_is_caught() {
        let (mut history, first, _) = frozen();
        history.used_with(first, 5, true);
        end(&mut history, first).breaks(M1);
    }

    #[test]
    fn a_refusal_without_a_higher_fence_is_caught() {
        let (mut history, first, second) = frozen();
        history.used_with(second, 6, false);
        end(&mut history, first).breaks(M1);
    }

    #[test]
    fn a_made_up_fence_is_caught() {
        let (mut history, first, second) = frozen();
        history.used_with(second, 7, true);
        end(&mut history, first).breaks(M1);
    }

    #[test]
    fn sequence_numbers_as_fences_repeat_when_the_line_is_recreated() {
        let mut history = HistoryBuilder::new();
        for (at, number) in [(100, 0), (200, 1)] {
            let attempt = history.at(at).reset().begin(number);
            history.create(attempt).at(at + 10).grant_with(attempt, 0).used_with(attempt, 0, true);
            history.at(at + 20).dropped(attempt).delete(attempt);
        }
        assert_eq!(history.end(1_000).broken(), [M1, M4]);
    }
}
