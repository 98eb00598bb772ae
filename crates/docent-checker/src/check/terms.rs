use crate::analysis::Analysis;
use crate::event::{AttemptId, EventKind};
use crate::violation::{Found, Invariant, Violation};
use std::collections::BTreeMap;

/// **Terms increase**: every term has a fence, and it is higher than those of all terms of the election that
/// began before it.
///
/// M4 says so in the order of nodes, this in the order in which terms began. Left out are terms that others
/// had taken away before their leader knew that it leads: those are for M2.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    let mut highest: BTreeMap<&str, (u64, AttemptId)> = BTreeMap::new();
    for (_, event) in analysis.events() {
        let EventKind::Granted(id, grant) = &event.kind else { continue };
        let Some(trace) = analysis.attempts.get(*id).filter(|_| analysis.elections.standing(*id).is_some())
        else {
            continue;
        };
        let wrong = |what: String| {
            Violation::new(Invariant::E2, event.at, what)
                .attempt(*id)
                .client(trace.client)
                .path(trace.attempt.path.clone())
        };
        let Some(fence) = grant.fence else {
            found.push(wrong("a term has no fence:".to_owned()));
            continue;
        };
        let gone = analysis.node_of(trace).and_then(|(_, node)| node.gone);
        if gone.is_some_and(|gone| gone.when.at <= event.at) {
            continue;
        }
        let (before, by) = *highest.entry(&trace.attempt.path).or_insert((0, *id));
        if fence <= before {
            let what = format!("the fence of a term is {fence}, that of an earlier one was {before}:");
            found.push(wrong(what).attempt(by));
        }
        if fence > before {
            highest.insert(&trace.attempt.path, (fence, *id));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::event::{EventKind, FaultKind};
    use crate::history::{ElectionEvents, HistoryBuilder};
    use crate::violation::Invariant::{E2, M4};

    fn terms(fences: [Option<u64>; 2]) -> HistoryBuilder {
        let mut history = HistoryBuilder::new();
        for (number, fence) in (0..).zip(fences) {
            let at = 100 + 100 * u64::from(number);
            let attempt = history.at(at).campaign(number);
            history.create(attempt).at(at + 10).grant(attempt).at(at + 20).dropped(attempt).delete(attempt);
            for event in &mut history.run.events {
                if let EventKind::Granted(id, grant) = &mut event.kind
                    && *id == attempt
                {
                    grant.fence = fence;
                }
            }
        }
        history.end(1_000)
    }

    #[test]
    fn terms_that_increase_are_right() {
        terms([Some(5), Some(7)]).holds();
    }

    #[test]
    fn a_term_that_is_not_higher_is_caught() {
        assert_eq!(terms([Some(5), Some(4)]).broken(), [M4, E2]);
        assert_eq!(terms([Some(5), Some(5)]).broken(), [crate::Invariant::M1, M4, E2]);
    }

    #[test]
    fn a_term_without_a_fence_is_caught() {
        assert_eq!(terms([Some(5), None]).broken(), [M4, E2]);
    }

    #[test]
    fn who_leads_out_of_the_order_of_the_line_is_caught() {
        let mut history = HistoryBuilder::new();
        let (first, second) = (history.at(100).campaign(0), history.campaign(1));
        history.create(first).create(second).at(110).grant(second).at(120).dropped(second).delete(second);
        history.at(130).grant(first).end(300).breaks_also(E2);
    }

    #[test]
    fn a_term_that_was_taken_away_before_it_was_known_is_left_out() {
        let mut history = HistoryBuilder::new();
        let (first, second) = (history.at(100).campaign(0), history.campaign(1));
        history.create(first).create(second);
        let node = history.node(first);
        history
            .at(105)
            .fault(0, FaultKind::Deleted)
            .delete_path(&node, 7)
            .at(107)
            .grant(second)
            .at(108)
            .grant(first)
            .lost(first);
        history.dropped(first).end(300).holds();
    }
}
