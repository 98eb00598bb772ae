//! Waiting for the contenders ahead: a watch on one node ahead, and one on the own node.

use super::draw::list_request;
use super::fresh::keep_fresh;
use super::position::{Further, Position};
use super::ticket::Step;
use super::watches::LineWatches;
use super::{Ticket, WaitError};
use crate::guard::Role;
use crate::session::{Fired, Lane, Watch};
use docent_proto::{EventKind, Request};
use std::future::pending;

/// Waits for the contender that decides the next step. If the predecessor is alone ahead, this is the
/// predecessor. Otherwise it is the contender before the predecessor, so that the ticket lists the line while
/// the predecessor holds, and not when its own turn has come.
pub(super) async fn wait_for(
    ticket: &Ticket,
    predecessor: String,
    further: Further,
    watches: &mut LineWatches,
) -> Result<Step, WaitError> {
    let target = further.nearest().unwrap_or(&predecessor).clone();
    if planted!(ExistenceWatch) && !watches.are_set(&target) {
        let _ = watches.set(ticket, &[]).await?;
        let _ = watches.read(ticket, &target).await?;
    }
    if !watches.are_set(&target) && !watches.set(ticket, std::slice::from_ref(&target)).await? {
        return Ok(Step::List);
    }
    let (own, Some(ahead)) = watches.on(&target) else { return Ok(Step::List) };
    // Event: A ticket waits in the line of a lock, semaphore or election until the node `target` is deleted
    // or changes.
    tracing::trace!(target: "docent::lock", client = %ticket.line.client().label(), ticket = %ticket.node.path, %target, "waiting in line");
    // Servers may send no events about a node that this client may not read. A long wait reads the node once
    // to find out.
    let max_silence = ticket.generation.lease.timeout() / 3;
    let fired = tokio::select! {
        biased;
        fired = fired_own(own) => return own_fired(ticket, fired, watches),
        fired = &mut ahead.watch => fired,
        error = keep_fresh(ticket), if ticket.must_keep_fresh(&further) => return Err(error),
        () = tokio::time::sleep(max_silence), if !ahead.delivers_events => Fired::Event(EventKind::DataChanged),
    };
    let losses = ahead.losses;
    match fired {
        Fired::Event(EventKind::Deleted) => {
            watches.forget(&target);
            if planted!(WaiterSleepsOn) {
                tokio::time::sleep(std::time::Duration::from_secs(5)).await;
            }
            // Events of a link arrive in the order of their transactions. If the own node was deleted before
            // this one, its watch has already fired, although `select` may not have polled that watch since.
            if let Some(fired) = watches.own_fired() {
                return own_fired(ticket, fired, watches);
            }
            Ok(step_after_deletion(ticket, predecessor, further, losses, watches.own.is_some()))
        }
        // The contender now holds and has recorded that, or another client asked it to leave. Its place is
        // the same.
        Fired::Event(EventKind::DataChanged) => match watches.read(ticket, &target).await? {
            None if watches.are_set(&target) && is_same_link(ticket, losses) => {
                Ok(Step::At(Position::Behind { predecessor, further }))
            }
            None => Ok(Step::List),
            Some(_) => wait_for_unreadable(ticket, &target, watches).await,
        },
        Fired::Event(_) => {
            watches.forget(&target);
            Ok(Step::List)
        }
        Fired::Ended(end) => Err(ticket.ended(end)),
    }
}

/// Returns true while watches report events in order, on the same link since `losses` links were lost.
fn is_same_link(ticket: &Ticket, losses: u64) -> bool {
    ticket.generation.session.orders_events() && ticket.generation.losses() == losses
}

/// Waits for a contender ahead whose node this client may not read. `exists` needs no permission, but also
/// leaves a watch on a missing node, which is then removed. Some servers send no events about a node that the
/// client may not read, so the line is also listed from time to time.
async fn wait_for_unreadable(
    ticket: &Ticket,
    name: &str,
    watches: &mut LineWatches,
) -> Result<Step, WaitError> {
    let exists = Request::Exists { path: format!("{}/{name}", ticket.line.full_path()), watch: true };
    let Some(reply) = ticket.reply(ticket.generation.session.submit(exists, Lane::Call).await).await? else {
        return Ok(Step::List);
    };
    let (Ok(_), Some(watch)) = (reply.result, reply.watch) else { return Ok(Step::List) };
    tokio::select! {
        biased;
        fired = fired_own(&mut watches.own) => own_fired(ticket, fired, watches),
        fired = watch => match fired {
            Fired::Event(_) => Ok(Step::ProveAndList),
            Fired::Ended(end) => Err(ticket.ended(end)),
        },
        () = tokio::time::sleep(ticket.generation.lease.timeout() / 3) => Ok(Step::ProveAndList),
    }
}

/// Returns the next step after the deletion of the awaited node: the predecessor's, or one further ahead.
fn step_after_deletion(
    ticket: &Ticket,
    predecessor: String,
    further: Further,
    losses: u64,
    own_watched: bool,
) -> Step {
    if planted!(WakeUpIsGrant) {
        return Step::At(Position::First);
    }
    // The hold is granted without another round trip only if our own node certainly exists (decisions 3 and
    // 18). After a reconnect, the server reports the changes of the gap path by path, so the predecessor's
    // deletion may arrive before an earlier deletion of our own node. Sessions of `zookeeper-client` never
    // keep the order.
    let own_watched = own_watched || planted!(HandOffWithoutOwnWatch);
    let is_evident = own_watched && ticket.is_evident(losses);
    match further {
        Further::None if is_evident => Step::At(Position::First),
        Further::None => Step::Prove,
        Further::Few(mut ahead) => {
            ahead.pop();
            ahead.push(predecessor);
            Step::CheckAhead(ahead)
        }
        Further::Before(_) if is_evident && planted!(OneBeforeIsPredecessor) => Step::At(Position::First),
        Further::Before(_) => Step::ListAndWatch(predecessor),
        // If a listing would need a proof, both go in the same round trip.
        Further::Unknown | Further::Unordered if is_evident => Step::List,
        Further::Unknown | Further::Unordered => Step::ProveAndList,
    }
}

impl Ticket {
    /// Returns true if the events of this link about the own node and the nodes ahead suffice for a hold,
    /// without a check of the own node. This requires that no link was lost since `losses`, that events
    /// arrive in order, and that a write is recent enough (decision 18).
    pub(super) fn is_evident(&self, losses: u64) -> bool {
        is_same_link(self, losses) && self.acked_recently()
    }

    /// Returns true for the next ticket in a line. Only one ticket for each line does this, so that many
    /// waiters write nothing: all readers behind a writer would be next at the same time.
    fn must_keep_fresh(&self, further: &Further) -> bool {
        further.is_next() && self.line.role() == Role::Exclusive && self.generation.session.orders_events()
    }

    /// Lists the line and returns the place. If the reply arrives on the same link as everything before, and
    /// a write is recent enough, a listing in which the own node is first is sufficient evidence (decision
    /// 18).
    pub(super) async fn list_for_step(&self) -> Result<Step, WaitError> {
        let losses = self.generation.losses();
        let position = self.list().await?;
        Ok(self.step_after_listing(position, losses))
    }

    /// Lists the line after a contender before the predecessor has left, and watches the predecessor in the
    /// same round trip. Usually the predecessor now holds, and no other contender is ahead.
    pub(super) async fn list_and_watch(
        &self,
        predecessor: String,
        watches: &mut LineWatches,
    ) -> Result<Step, WaitError> {
        let losses = self.generation.losses();
        let list = self.generation.session.submit(list_request(&self.line), Lane::Call);
        // If the watch is skipped here, it is set once the place is known.
        if !planted!(ExistenceWatch) {
            let _ = watches.set(self, &[predecessor]).await?;
        }
        let position = self.position_in(list.await).await?;
        Ok(self.step_after_listing(position, losses))
    }

    fn step_after_listing(&self, position: Position, losses: u64) -> Step {
        match position {
            // A listing is a read: it may be stale, and does not renew the lease.
            Position::First if !self.is_evident(losses) => Step::Prove,
            position => Step::At(position),
        }
    }

    /// Finds out which contenders of `ahead`, in line order, remain, by setting watches on their nodes. A
    /// contender whose node was deleted has left for good: its name is never used again, and new contenders
    /// join behind.
    pub(super) async fn check_ahead(
        &self,
        ahead: Vec<String>,
        watches: &mut LineWatches,
    ) -> Result<Step, WaitError> {
        let losses = self.generation.losses();
        if !watches.set(self, &ahead).await? {
            return Ok(Step::List);
        }
        let in_order = watches.are_of_link(&ahead, losses);
        let mut remaining = watches.remaining(ahead);
        // If the own node was deleted first, its event has already arrived.
        if let Some(fired) = watches.own_fired() {
            return own_fired(self, fired, watches);
        }
        Ok(match remaining.pop() {
            None if in_order && watches.own.is_some() && self.is_evident(losses) => Step::At(Position::First),
            None => Step::Prove,
            Some(predecessor) => {
                let further = if remaining.is_empty() { Further::None } else { Further::Few(remaining) };
                Step::At(Position::Behind { predecessor, further })
            }
        })
    }
}

/// Returns the next step after an event of the own node.
pub(super) fn own_fired(ticket: &Ticket, fired: Fired, watches: &mut LineWatches) -> Result<Step, WaitError> {
    watches.own = None;
    watches.own_changed = true;
    match fired {
        Fired::Event(EventKind::Deleted) => Err(WaitError::Gone),
        Fired::Event(_) => Ok(Step::List),
        Fired::Ended(end) => Err(ticket.ended(end)),
    }
}

async fn fired_own(own: &mut Option<Box<Watch>>) -> Fired {
    match own {
        Some(watch) => watch.await,
        None => pending().await,
    }
}
