use crate::analysis::Analysis;
use crate::violation::{Found, Invariant, Violation};
use std::collections::BTreeMap;

/// **Fences increase**: every exclusive guard has a fence, derived from the transaction that created its
/// node. The fence is higher than those of all earlier holders of the path. The fence of a turn with a shared
/// ticket is derived from that transaction and the number of the turn.
///
/// Assumed: one history of the ensemble, which was not restored from an older snapshot. A downgraded guard is
/// not exclusive, and not checked.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    let mut highest: BTreeMap<&str, u64> = BTreeMap::new();
    let exclusive = analysis.attempts.all().filter(|trace| trace.is_exclusive());
    let held = exclusive.filter_map(|trace| {
        let (_, node) = analysis.node_of(trace)?;
        let (at, grant) = trace.granted?;
        Some((node.created.zxid, grant.turn.map(|turn| turn.number), at, grant, trace))
    });
    let mut held: Vec<_> = held.collect();
    held.sort_by_key(|(czxid, turn, at, ..)| (*czxid, *turn, *at));
    for (czxid, _, at, grant, trace) in held {
        let wrong = |what: String| {
            Violation::new(Invariant::M4, at, what)
                .attempt(trace.id())
                .client(trace.client)
                .path(trace.attempt.path.clone())
        };
        let Some(fence) = grant.fence else {
            found.push(wrong("granted without a fence:".to_owned()));
            continue;
        };
        let due = u64::try_from(czxid).map(|czxid| grant.turn.map_or(czxid, |turn| turn.fence(czxid)));
        if due != Ok(fence) {
            found.push(wrong(format!("its fence is {fence}, but transaction {czxid} created its node:")));
        }
        let before = highest.insert(&trace.attempt.path, fence);
        if let Some(before) = before.filter(|before| *before >= fence) {
            found.push(wrong(format!("its fence is {fence}, but an earlier holder's was {before}:")));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::event::EventKind;
    use crate::history::HistoryBuilder;
    use crate::violation::Invariant::M4;

    fn with_fences(fences: [Option<u64>; 2]) -> HistoryBuilder {
        let mut history = HistoryBuilder::good();
        let mut fences = fences.into_iter();
        for event in &mut history.run.events {
            if let EventKind::Granted(_, grant) = &mut event.kind {
                grant.fence = fences.next().unwrap();
            }
        }
        history.run.events.retain(|event| !matches!(event.kind, EventKind::Used(..)));
        history
    }

    #[test]
    fn the_transaction_ids_of_the_nodes_are_right() {
        with_fences([Some(5), Some(6)]).holds();
    }

    #[test]
    fn a_decreasing_fence_is_caught() {
        with_fences([Some(7), Some(6)]).breaks(M4);
        assert_eq!(with_fences([Some(7), Some(6)]).sentences(M4).len(), 2);
    }

    #[test]
    fn sequence_numbers_are_no_fences_even_while_they_rise() {
        with_fences([Some(0), Some(1)]).breaks(M4);
    }

    #[test]
    fn a_guard_without_a_fence_is_caught() {
        with_fences([None, Some(6)]).breaks(M4);
    }
}
