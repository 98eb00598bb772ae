use super::orphans::due;
use crate::analysis::Analysis;
use crate::event::ClientId;
use crate::journal_replay::NodeLife;
use crate::queues::{Queues, Take};
use crate::violation::{Found, Invariant, Violation};
use std::time::Duration;

/// **Claims and places are given up**: a claim is there only while its delivery is held or a take of its
/// client is under way, and a place in the line of the idle only while a take is; after that they go as soon
/// as the client is connected and well for a moment, or else with its session.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    let queues = Queues::of(analysis);
    for item in queues.items.values() {
        for claim in &item.claims {
            let Some(client) = analysis.client_of(claim.owner) else { continue };
            let needed = match delivery(&queues, claim, &item.node.path) {
                Some(until) => until,
                None => taken(analysis, queues.takes_of(client, &item.queued.queue), claim),
            };
            found.extend(left(analysis, client, claim, needed));
        }
    }
    for (queue, node) in &queues.idle {
        if let Some(client) = analysis.client_of(node.owner) {
            let needed = taken(analysis, queues.takes_of(client, queue), node);
            found.extend(left(analysis, client, node, needed));
        }
    }
}

/// Time until which the delivery of a claim is held, if there is one.
fn delivery(queues: &Queues<'_>, claim: &NodeLife, item: &str) -> Option<Option<Duration>> {
    let fence = claim.created.zxid.unsigned_abs();
    let mut deliveries = queues.deliveries_of(item);
    let delivered = deliveries.find(|delivered| delivered.fence == fence)?;
    let acked = delivered.acked.map(|(at, _)| at);
    Some([acked, delivered.given_back].into_iter().flatten().min())
}

/// Time until which a node is needed by takes that were under way when it was made; `None` while it is.
fn taken<'b>(
    analysis: &Analysis<'_>,
    takes: impl Iterator<Item = &'b Take<'b>>,
    node: &NodeLife,
) -> Option<Duration> {
    let (created, grain) = (node.created.at, analysis.tolerances().grain);
    let mut until = created;
    for take in takes.filter(|take| take.began <= created + grain) {
        until = until.max(take.over?);
    }
    Some(until)
}

/// A node that outlived its reason.
fn left(
    analysis: &Analysis<'_>,
    client: ClientId,
    node: &NodeLife,
    needed: Option<Duration>,
) -> Option<Violation> {
    let crashed = analysis.life(client).and_then(|life| life.crashed);
    let reason = [needed, crashed].into_iter().flatten().min()?;
    let due = due(analysis, client, node, reason)?;
    let gone = node.gone.map(|gone| gone.when.at);
    if gone.is_some_and(|gone| gone <= due) || gone.is_none() && !analysis.shows(due) {
        return None;
    }
    let what = format!("a node that nobody needs from {:.4} on is still there:", reason.as_secs_f64());
    Some(Violation::new(Invariant::Q9, due, what).client(client).path(&node.path))
}

#[cfg(test)]
mod tests {
    use crate::event::{EventKind, FaultKind, LinkState};
    use crate::history::{HistoryBuilder, QueueEvents};
    use crate::journal::EndCause;
    use crate::violation::Invariant::Q9;

    #[test]
    fn a_claim_goes_when_its_delivery_is_given_back() {
        let mut history = HistoryBuilder::new();
        let item = history.at(3_000).put(0, 7);
        let given = history.at(3_100).give(1, &item, 1);
        history.at(3_200).given_back(&given);
        history.clone().at(4_000).delete_claim(&given).end(20_000).holds();
        history.clone().end(4_000).holds();
        history.end(20_000).breaks(Q9);
    }

    #[test]
    fn a_claim_stays_while_its_client_is_cut_off() {
        let mut history = HistoryBuilder::new();
        let item = history.at(3_000).put(0, 7);
        let given = history.at(3_100).give(1, &item, 1);
        history.at(3_150).fault(1, FaultKind::Cut).at(3_200).given_back(&given);
        history.at(9_000).heal(1, FaultKind::Cut).at(9_100).link(1, LinkState::Connected);
        history.clone().at(10_000).delete_claim(&given).end(20_000).holds();
        history.at(14_000).delete_claim(&given).end(20_000).breaks(Q9);
    }

    #[test]
    fn the_claim_of_a_take_that_was_cancelled_goes() {
        let mut history = HistoryBuilder::new();
        let item = history.at(3_000).put(0, 7);
        let take = history.at(3_050).take(1, true);
        let claim = history.at(3_100).claim(1, &item);
        history.at(3_101).over(1, take);
        history.clone().at(3_110).delete_path(&claim, 2).end(20_000).holds();
        history.end(20_000).breaks(Q9);
    }

    #[test]
    fn a_place_in_the_line_goes_with_its_take() {
        let mut history = HistoryBuilder::new();
        let take = history.at(3_050).take(1, true);
        let place = history.at(3_100).idle(1);
        history.clone().end(20_000).holds();
        history.at(4_000).over(1, take);
        history.clone().at(4_010).delete_path(&place, 2).end(20_000).holds();
        history.end(20_000).breaks(Q9);
    }

    #[test]
    fn what_a_dead_consumer_leaves_goes_with_its_session() {
        let mut history = HistoryBuilder::new();
        let item = history.at(3_000).put(0, 7);
        history.at(3_100).give(1, &item, 1);
        history.at(3_200).tell(1, EventKind::Crashed);
        history.clone().at(9_000).end_session(2, EndCause::Expired).end(30_000).holds();
        history.end(30_000).breaks_also(Q9);
    }
}
