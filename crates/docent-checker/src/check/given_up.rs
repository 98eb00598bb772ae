use super::orphans::due;
use crate::analysis::{Analysis, End};
use crate::event::ClientId;
use crate::journal_replay::NodeLife;
use crate::queues::{Delivered, Queues, Take, Ticket};
use crate::violation::{Found, Invariant, Violation};
use std::time::Duration;

/// **Claims and places are given up**: a claim is there only while its delivery is held or a take of its
/// client is under way and polled, and for [`KEEP`] after that for the next take; a ticket for the lock in
/// ordered mode is there for as long, whether or not the take is polled; a place in the line of the idle only
/// while a take is under way. After that they go as soon as the client is connected and well for a moment, or
/// else with its session. An item that was given back for later is at a place that says until when, from the
/// step on in which its claim goes; in ordered mode the ticket is there until then.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    let queues = Queues::of(analysis);
    for item in queues.items.values() {
        for claim in &item.claims {
            let Some(client) = analysis.client_of(claim.owner) else { continue };
            let needed = match delivery(&queues, claim, &item.node.path) {
                Some(until) => until,
                None => {
                    let takes = queues.takes_of(client, &item.queued.queue);
                    let over = |take: &Take<'_>| match item.ordered {
                        // A ticket, which a take that is not polled may have until its turn comes.
                        true => take.over,
                        false => polled_until(take, claim),
                    };
                    taken(takes.map(|take| (take.began, over(take))), claim, KEEP)
                }
            };
            found.extend(left(analysis, client, claim, needed));
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
            let needed = taken(takes.map(|take| (take.began, take.over)), ticket.node, KEEP);
            found.extend(left(analysis, client, ticket.node, needed));
        }
    }
    for (queue, node) in &queues.idle {
        if let Some(client) = analysis.client_of(node.owner) {
            let gap = analysis.tolerances().scheduling;
            let takes = queues.takes_of(client, queue);
            let needed = taken(takes.map(|take| (take.began, take.over)), node, gap);
            found.extend(left(analysis, client, node, needed));
        }
    }
}

/// How long a claim is kept whose take is gone: for the next take of its client.
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

/// Time until which a take may keep a claim: not for long while nobody polls it.
fn polled_until(take: &Take<'_>, claim: &NodeLife) -> Option<Duration> {
    let Some(unpolled) = take.unpolled else { return take.over };
    let offered = unpolled.max(claim.created.at);
    Some(take.over.filter(|over| *over <= offered + KEEP).unwrap_or(offered))
}

/// Time until which a node is needed by takes, each with its begin and its end, that were under way when it
/// was made, and by those that began while it was kept after the last one; `None` while it is.
fn taken(
    takes: impl Iterator<Item = (Duration, Option<Duration>)>,
    node: &NodeLife,
    kept: Duration,
) -> Option<Duration> {
    let mut until = node.created.at + kept;
    for (began, over) in takes {
        if began > until {
            break;
        }
        until = until.max(over? + kept);
    }
    Some(until)
}

/// A claim that its client gave up before the time for which the item was given back, without moving the item
/// to a place with that time. A delivery that was lost before may end at any time.
fn too_early(
    analysis: &Analysis<'_>,
    queues: &Queues<'_>,
    client: ClientId,
    claim: &NodeLife,
    item: &str,
) -> Option<Violation> {
    let delivered = delivered_by(queues, claim, item).filter(|delivered| delivered.settling.is_none())?;
    let (due, gone) = (delivered.given_back?, claim.gone?);
    let (life, gone_at) = (analysis.life(client)?, gone.when.at);
    let was_lost = delivered.looks.iter().any(|(at, held)| !held && *at <= gone_at);
    let well = life.apart.spare(claim.created.at, gone_at) && analysis.end_of(claim, gone) == End::Own;
    let is_late_enough = |at: Duration| at + analysis.tolerances().grain >= due;
    let moved = queues.moved_by(delivered.item, gone.when.zxid).and_then(|item| item.place.due);
    if was_lost || !well || is_late_enough(moved.unwrap_or(gone_at)) {
        return None;
    }
    let what = format!("item {} is in its place {:?} before its time:", delivered.item, due - gone_at);
    Some(Violation::new(Invariant::Q9, gone_at, what).client(client).path(&claim.path))
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
    use crate::event::{EventKind, FaultKind, LinkState, Taking};
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
    fn the_claim_of_a_take_that_is_not_polled_goes() {
        let mut history = HistoryBuilder::new();
        let item = history.at(3_000).put(0, 7);
        let take = history.at(3_050).take(1, false);
        history.at(3_100).claim(1, &item);
        history.clone().end(20_000).holds();
        history.at(3_101).tell(1, EventKind::Took(take, Taking::Unpolled));
        history.clone().at(5_000).end_claim(1, &item).end(20_000).holds();
        history.at(18_000).over(1, take).end(20_000).breaks(Q9);
    }

    #[test]
    fn the_claim_of_a_take_that_was_cancelled_goes() {
        let mut history = HistoryBuilder::new();
        let item = history.at(3_000).put(0, 7);
        let take = history.at(3_050).take(1, true);
        history.at(3_100).claim(1, &item);
        history.at(3_101).over(1, take);
        history.clone().at(5_000).end_claim(1, &item).end(20_000).holds();
        // It is kept for two seconds, and two are allowed to delete it.
        history.clone().at(7_500).end_claim(1, &item).end(20_000).breaks(Q9);
        let next = history.at(4_900).take(1, true);
        history.at(6_500).over(1, next).at(8_400).end_claim(1, &item).end(20_000).holds();
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
