use super::orphans::due;
use crate::analysis::{Analysis, End};
use crate::event::ClientId;
use crate::journal_replay::NodeLife;
use crate::queues::{Delivered, Queues, Take, Ticket};
use crate::violation::{Found, Invariant, Violation};
use std::time::Duration;

/// **Claims and places are given up** when their reason ends:
///
/// - A claim exists while its delivery is held, or while a take of its client is in progress and polled, and
///   for [`KEEP`] after that for the next take.
/// - In ordered mode a ticket for the lock exists equally long, whether or not the take is polled.
/// - A place in the line of idle consumers exists only while a take is in progress.
///
/// After that the nodes are deleted as soon as the client was connected and healthy for a moment, or else
/// with its session. An item that was given back for later has that time in its name from the transaction on
/// that ends its claim. In ordered mode the ticket exists until that time.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    let queues = Queues::of(analysis);
    for item in queues.items.values() {
        for claim in &item.claims {
            let Some(client) = analysis.client_of(claim.owner) else { continue };
            let needed = match delivery(&queues, claim, &item.node.path) {
                Some(until) => until,
                None => {
                    let takes = queues.takes_of(client, &item.queued.queue);
                    let needed_until = |take: &Take<'_>| match item.ordered {
                        // A ticket. A take that is not polled may keep the ticket until its turn comes.
                        true => take.ended,
                        false => polled_until(take, claim),
                    };
                    taken(takes.map(|take| (take.began, needed_until(take))), claim, KEEP)
                }
            };
            found.extend(not_deleted(analysis, client, claim, needed));
            found.extend(too_early(analysis, &queues, client, claim, &item.node.path));
        }
    }
    let is_claim = |ticket: &Ticket<'_>| {
        let mut claims = queues.items.values().flat_map(|item| &item.claims);
        claims.any(|claim| std::ptr::eq(*claim, ticket.node))
    };
    for ticket in queues.tickets.iter().filter(|ticket| !is_claim(ticket)) {
        if let Some(client) = analysis.client_of(ticket.node.owner) {
            let takes = queues.takes_of(client, ticket.queue);
            let needed = taken(takes.map(|take| (take.began, take.ended)), ticket.node, KEEP);
            found.extend(not_deleted(analysis, client, ticket.node, needed));
        }
    }
    for (queue, node) in &queues.idle {
        if let Some(client) = analysis.client_of(node.owner) {
            let gap = analysis.tolerances().scheduling;
            let takes = queues.takes_of(client, queue);
            let needed = taken(takes.map(|take| (take.began, take.ended)), node, gap);
            found.extend(not_deleted(analysis, client, node, needed));
        }
    }
}

/// How long a client keeps a claim for its next take after the take ended.
const KEEP: Duration = Duration::from_secs(2);

fn delivered_by<'b, 's>(queues: &'b Queues<'s>, claim: &NodeLife, item: &str) -> Option<&'b Delivered<'s>> {
    let fence = claim.created.zxid.unsigned_abs();
    queues.deliveries_of(item).find(|delivered| delivered.fence == fence)
}

/// Time until which the delivery of a claim is held, if there is one.
fn delivery(queues: &Queues<'_>, claim: &NodeLife, item: &str) -> Option<Option<Duration>> {
    let delivered = delivered_by(queues, claim, item)?;
    Some(delivered.given_back.or(delivered.settled.map(|(at, _)| at)))
}

/// Time until which a take may keep a claim. A take that is not polled may keep a claim only for a short
/// time.
fn polled_until(take: &Take<'_>, claim: &NodeLife) -> Option<Duration> {
    let Some(unpolled) = take.unpolled else { return take.ended };
    let offered = unpolled.max(claim.created.at);
    Some(take.ended.filter(|ended| *ended <= offered + KEEP).unwrap_or(offered))
}

/// Time until which a node is needed by takes, given as pairs of begin and end; `None` while a take still
/// needs the node.
///
/// These are the takes that were in progress when the node was created, and those that began while the node
/// was kept after an earlier one.
fn taken(
    takes: impl Iterator<Item = (Duration, Option<Duration>)>,
    node: &NodeLife,
    kept: Duration,
) -> Option<Duration> {
    let mut until = node.created.at + kept;
    for (began, ended) in takes {
        if began > until {
            break;
        }
        until = until.max(ended? + kept);
    }
    Some(until)
}

/// Finds a claim that its client gave up before the time for which the item was given back, without moving
/// the item to a place with that time. If the delivery was lost before, the claim may end at any time.
fn too_early(
    analysis: &Analysis<'_>,
    queues: &Queues<'_>,
    client: ClientId,
    claim: &NodeLife,
    item: &str,
) -> Option<Violation> {
    let delivered = delivered_by(queues, claim, item).filter(|delivered| delivered.settling.is_none())?;
    let (due, deleted) = (delivered.given_back?, claim.deleted?);
    let (life, deleted_at) = (analysis.life(client)?, deleted.when.at);
    let was_lost = delivered.held_checks.iter().any(|(at, held)| !held && *at <= deleted_at);
    let well = life.apart.spare(claim.created.at, deleted_at) && analysis.end_of(claim, deleted) == End::Own;
    let is_late_enough = |at: Duration| at + analysis.tolerances().grain >= due;
    let moved = queues.moved_by(delivered.item, deleted.when.zxid).and_then(|item| item.place.due);
    if was_lost || !well || is_late_enough(moved.unwrap_or(deleted_at)) {
        return None;
    }
    let what = format!("item {} is available again {:?} before its time:", delivered.item, due - deleted_at);
    Some(Violation::new(Invariant::Q9, deleted_at, what).client(client).path(&claim.path))
}

/// Finds a node that outlived its reason.
fn not_deleted(
    analysis: &Analysis<'_>,
    client: ClientId,
    node: &NodeLife,
    needed: Option<Duration>,
) -> Option<Violation> {
    let crashed = analysis.life(client).and_then(|life| life.crashed);
    let reason = [needed, crashed].into_iter().flatten().min()?;
    let due = due(analysis, client, node, reason)?;
    let deleted = node.deleted.map(|deleted| deleted.when.at);
    if deleted.is_some_and(|deleted| deleted <= due) || deleted.is_none() && !analysis.shows(due) {
        return None;
    }
    let what = format!("a node that is unused since {:.4} still exists:", reason.as_secs_f64());
    Some(Violation::new(Invariant::Q9, due, what).client(client).path(&node.path))
}

#[cfg(test)]
mod tests {
    use crate::event::{EventKind, FaultKind, LinkState, Taking};
    use crate::history::{HistoryBuilder, QueueEvents};
    use crate::journal::EndCause;
    use crate::violation::Invariant::Q9;

    #[test]
    fn a_claim_is_deleted_when_its_delivery_is_given_back() {
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
    fn the_claim_of_a_take_that_is_not_polled_is_deleted() {
        let mut history = HistoryBuilder::new();
        let item = history.at(3_000).put(0, 7);
        let take = history.at(3_050).take(1, false);
        history.at(3_100).claim(1, &item);
        history.clone().end(20_000).holds();
        history.at(3_101).record(1, EventKind::Took(take, Taking::Unpolled));
        history.clone().at(5_000).end_claim(1, &item).end(20_000).holds();
        history.at(18_000).end_take(1, take).end(20_000).breaks(Q9);
    }

    #[test]
    fn the_claim_of_a_cancelled_take_is_deleted() {
        let mut history = HistoryBuilder::new();
        let item = history.at(3_000).put(0, 7);
        let take = history.at(3_050).take(1, true);
        history.at(3_100).claim(1, &item);
        history.at(3_101).end_take(1, take);
        history.clone().at(5_000).end_claim(1, &item).end(20_000).holds();
        // A claim is kept for two seconds, and its client may take two more to delete it.
        history.clone().at(7_500).end_claim(1, &item).end(20_000).breaks(Q9);
        let next = history.at(4_900).take(1, true);
        history.at(6_500).end_take(1, next).at(8_400).end_claim(1, &item).end(20_000).holds();
    }

    #[test]
    fn a_claim_stays_while_its_item_is_given_back_for_later() {
        let mut history = HistoryBuilder::new();
        let item = history.at(3_000).put(0, 7);
        let given = history.at(3_100).give(1, &item, 1);
        history.at(3_200).given_back_for(&given, 1_000);
        history.clone().at(4_200).delete_claim(&given).end(20_000).holds();
        history.clone().at(4_100).delete_claim(&given).end(20_000).breaks(Q9);
        history.clone().held(&given, false).at(4_100).delete_claim(&given).end(20_000).holds();
        let move_until = |time: u64| {
            let mut history = history.clone();
            history.at(3_210).move_item(&given, &format!("r{time:016x}-"));
            history.end(20_000)
        };
        move_until(4_200).holds();
        move_until(4_100).breaks(Q9);
        history.at(4_100).end_session(2, EndCause::Forced).link(1, LinkState::Lost).end(20_000).holds();
    }

    #[test]
    fn a_node_in_the_line_is_deleted_with_its_take() {
        let mut history = HistoryBuilder::new();
        let take = history.at(3_050).take(1, true);
        let place = history.at(3_100).idle(1);
        history.clone().end(20_000).holds();
        history.at(4_000).end_take(1, take);
        history.clone().at(4_010).delete_path(&place, 2).end(20_000).holds();
        history.end(20_000).breaks(Q9);
    }

    #[test]
    fn the_nodes_of_a_crashed_consumer_are_deleted_with_its_session() {
        let mut history = HistoryBuilder::new();
        let item = history.at(3_000).put(0, 7);
        history.at(3_100).give(1, &item, 1);
        history.at(3_200).record(1, EventKind::Crashed);
        history.clone().at(9_000).end_session(2, EndCause::Expired).end(30_000).holds();
        history.end(30_000).breaks_also(Q9);
    }
}
