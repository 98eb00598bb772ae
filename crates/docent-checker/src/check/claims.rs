use crate::analysis::Analysis;
use crate::journal_replay::NodeLife;
use crate::queues::{Delivered, Queues};
use crate::violation::{Found, Invariant, Violation};
use std::collections::BTreeSet;
use std::time::Duration;

/// **Claims**: each delivery has a claim of its item, which is that delivery's alone, and says that it is
/// held only while that is there. As an item has one claim at a time there is one valid delivery of it at
/// each transaction.
///
/// When a claim goes that the client did not give up, the delivery knows before a session ends by silence, or
/// as soon as news of it come.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    let queues = Queues::of(analysis);
    let mut seen = BTreeSet::new();
    for delivered in &queues.deliveries {
        let wrong = match queues.claim_of(delivered) {
            None => Some((delivered.at, "was handed out without a claim:")),
            Some((_, claim)) => without(analysis, delivered, claim).or_else(|| {
                (!seen.insert((delivered.node, delivered.fence)))
                    .then_some((delivered.at, "was handed out twice by one claim:"))
            }),
        };
        if let Some((at, what)) = wrong {
            let what = format!("item {} {what}", delivered.item);
            let violation = Violation::new(Invariant::Q6, at, what);
            found.push(violation.client(delivered.client).path(delivered.node));
        }
    }
}

/// Its claim is another's, or was gone while it said that it was held.
fn without(
    analysis: &Analysis<'_>,
    delivered: &Delivered<'_>,
    claim: &NodeLife,
) -> Option<(Duration, &'static str)> {
    let grain = analysis.tolerances().grain;
    if analysis.client_of(claim.owner) != Some(delivered.client) || claim.created.at > delivered.at + grain {
        return Some((delivered.at, "was handed out by a claim that is another's:"));
    }
    let gone = claim.gone?.when.at;
    let due = analysis.notice(delivered.client, claim).unwrap_or(gone + grain);
    let said = delivered.looks.iter().find(|(at, held)| *held && *at > due);
    said.map(|(at, _)| (*at, "is said to be held by a claim that is gone:"))
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
    fn a_delivery_by_the_claim_of_another_is_caught() {
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
    fn a_delivery_whose_session_somebody_ends_knows_when_news_come() {
        let (mut history, given) = HistoryBuilder::of_delivery();
        history.at(5_000).end_session(2, EndCause::Forced).at(5_100).link(1, LinkState::Lost);
        history.clone().at(5_150).held(&given, true).end(9_000).holds();
        history.at(5_250).held(&given, true).end(9_000).breaks(Q6);
    }
}
