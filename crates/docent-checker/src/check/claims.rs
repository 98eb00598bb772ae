use crate::analysis::Analysis;
use crate::journal_replay::NodeLife;
use crate::queues::{Delivered, Queues};
use crate::violation::{Found, Invariant, Violation};
use std::collections::BTreeSet;
use std::time::Duration;

/// **Claims**: each delivery has its own claim of its item, and reports that it is held only while that claim
/// exists. Because an item has one claim at a time, at most one delivery of it is valid at each transaction.
///
/// If the claim is deleted although the client did not give it up, the delivery learns of this: before its
/// session expires, or as soon as a notification arrives.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    let queues = Queues::of(analysis);
    let mut seen = BTreeSet::new();
    for delivered in &queues.deliveries {
        let wrong = match queues.claim_of(delivered) {
            None => Some((delivered.at, "was handed out without a claim:")),
            Some((_, claim)) => without(analysis, delivered, claim).or_else(|| {
                (!seen.insert((delivered.node, delivered.fence)))
                    .then_some((delivered.at, "was handed out twice under one claim:"))
            }),
        };
        if let Some((at, what)) = wrong {
            let what = format!("item {} {what}", delivered.item);
            let violation = Violation::new(Invariant::Q6, at, what);
            found.push(violation.client(delivered.client).path(delivered.node));
        }
    }
}

/// Finds a delivery whose claim belongs to another client, or was deleted while the delivery reported that it
/// was held.
fn without(
    analysis: &Analysis<'_>,
    delivered: &Delivered<'_>,
    claim: &NodeLife,
) -> Option<(Duration, &'static str)> {
    let grain = analysis.tolerances().grain;
    if analysis.client_of(claim.owner) != Some(delivered.client) || claim.created.at > delivered.at + grain {
        return Some((delivered.at, "was handed out under another client's claim:"));
    }
    let deleted = claim.deleted?.when.at;
    let due = analysis.notice(delivered.client, claim).unwrap_or(deleted + grain);
    let late_report = delivered.held_checks.iter().find(|(at, held)| *held && *at > due);
    late_report.map(|(at, _)| (*at, "reports to be held under a deleted claim:"))
}

#[cfg(test)]
mod tests {
    use crate::event::LinkState;
    use crate::history::{HistoryBuilder, QueueEvents};
    use crate::journal::EndCause;
    use crate::violation::Invariant::Q6;

    #[test]
    fn a_delivery_without_a_claim_is_caught() {
        let (mut history, given) = HistoryBuilder::of_delivery();
        history.clone().end(1_000).holds();
        history.at(210).give_unclaimed(2, &given.item, 99).end(1_000).breaks(Q6);
    }

    #[test]
    fn a_delivery_by_the_claim_of_another_client_is_caught() {
        let (mut history, given) = HistoryBuilder::of_delivery();
        history.at(210).give_unclaimed(2, &given.item, given.fence).end(1_000).breaks(Q6);
        let (mut history, given) = HistoryBuilder::of_delivery();
        history.at(210).give_unclaimed(1, &given.item, given.fence).end(1_000).breaks(Q6);
    }

    #[test]
    fn a_delivery_that_is_held_after_its_session_is_caught() {
        let (mut history, given) = HistoryBuilder::of_delivery();
        history.at(400).held(&given, true).at(5_000).end_session(2, EndCause::Expired);
        history.link(1, LinkState::Lost);
        history.clone().at(5_001).held(&given, false).end(9_000).holds();
        history.at(5_010).held(&given, true).end(9_000).breaks(Q6);
    }

    #[test]
    fn a_delivery_may_be_held_until_its_client_learns_that_its_session_was_ended() {
        let (mut history, given) = HistoryBuilder::of_delivery();
        history.at(5_000).end_session(2, EndCause::Forced).at(5_100).link(1, LinkState::Lost);
        history.clone().at(5_150).held(&given, true).end(9_000).holds();
        history.at(5_250).held(&given, true).end(9_000).breaks(Q6);
    }
}
