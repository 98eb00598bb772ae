//! Waiting for those ahead: a watch on one node, and one on the own node.

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

/// Waits for the one that tells the next step: the predecessor, if it is alone ahead; the one before it
/// otherwise, so that the line is looked at while the predecessor holds, and not when its turn has come.
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
        return Ok(Step::Look);
    }
    let (own, Some(ahead)) = watches.on(&target) else { return Ok(Step::Look) };
    tracing::trace!(ticket = %ticket.node.path, %target, "waiting in line");
    // Servers may tell nothing of a node that this client may not read: whoever waits for long reads it once.
    let patience = ticket.generation.lease.timeout() / 3;
    let fired = tokio::select! {
        biased;
        fired = fired_own(own) => return own_fired(ticket, fired, watches),
        fired = &mut ahead.watch => fired,
        error = keep_fresh(ticket), if ticket.is_to_keep_fresh(&further) => return Err(error),
        () = tokio::time::sleep(patience), if !ahead.is_told => Fired::Event(EventKind::DataChanged),
    };
    let losses = ahead.losses;
    match fired {
        Fired::Event(EventKind::Deleted) => {
            watches.forget(&target);
            if planted!(WaiterSleepsOn) {
                tokio::time::sleep(std::time::Duration::from_secs(5)).await;
            }
            // Events of a link come in the order of their transactions: a deletion of our own node before
            // that one has fired by now, though `select` may not have polled that watch since.
            if let Some(fired) = watches.own_fired() {
                return own_fired(ticket, fired, watches);
            }
            Ok(one_ahead_left(ticket, predecessor, further, losses, watches.own.is_some()))
        }
        // It holds now, and has recorded that, or somebody asked it to leave: its place is the same.
        Fired::Event(EventKind::DataChanged) => match watches.read(ticket, &target).await? {
            None if watches.are_set(&target) && is_same_link(ticket, losses) => {
                Ok(Step::At(Position::Behind { predecessor, further }))
            }
            None => Ok(Step::Look),
            Some(_) => wait_for_unreadable(ticket, &target, watches).await,
        },
        Fired::Event(_) => {
            watches.forget(&target);
            Ok(Step::Look)
        }
        Fired::Ended(end) => Err(ticket.ended(end)),
    }
}

/// True while watches tell of what happened in its order since the link was lost so many times.
fn is_same_link(ticket: &Ticket, losses: u64) -> bool {
    ticket.generation.session.orders_events() && ticket.generation.losses() == losses
}

/// Waits for one ahead that we may not read. `exists` needs no permission, but leaves a watch on a missing
/// node, too, which is removed then. Some servers do not tell a client of changes of a node that it may not
/// read: so the line is listed from time to time as well.
async fn wait_for_unreadable(
    ticket: &Ticket,
    name: &str,
    watches: &mut LineWatches,
) -> Result<Step, WaitError> {
    let exists = Request::Exists { path: format!("{}/{name}", ticket.line.full_path()), watch: true };
    let Some(reply) = ticket.reply(ticket.generation.session.submit(exists, Lane::Call).await).await? else {
        return Ok(Step::Look);
    };
    let (Ok(_), Some(watch)) = (reply.result, reply.watch) else { return Ok(Step::Look) };
    tokio::select! {
        biased;
        fired = fired_own(&mut watches.own) => own_fired(ticket, fired, watches),
        fired = watch => match fired {
            Fired::Event(_) => Ok(Step::ProveAndLook),
            Fired::Ended(end) => Err(ticket.ended(end)),
        },
        () = tokio::time::sleep(ticket.generation.lease.timeout() / 3) => Ok(Step::ProveAndLook),
    }
}

/// Next step after the deletion of the one that was waited for: the predecessor, or one further ahead.
fn one_ahead_left(
    ticket: &Ticket,
    predecessor: String,
    further: Further,
    losses: u64,
    own_watched: bool,
) -> Step {
    if planted!(WakeUpIsGrant) {
        return Step::At(Position::First);
    }
    // Granted without another trip only where our own node surely stands (decisions 3 and 18). After a
    // reconnect the server reports the changes of the gap path by path, so that the predecessor's deletion
    // may be seen before an earlier one of our own node; sessions of `zookeeper-client` never keep the order.
    let own_watched = own_watched || planted!(HandOffWithoutOwnWatch);
    let is_evident = own_watched && ticket.is_evident(losses);
    match further {
        Further::Nobody if is_evident => Step::At(Position::First),
        Further::Nobody => Step::Prove,
        Further::Few(mut ahead) => {
            ahead.pop();
            ahead.push(predecessor);
            Step::Ask(ahead)
        }
        Further::Before(_) if is_evident && planted!(OneBeforeIsPredecessor) => Step::At(Position::First),
        Further::Before(_) => Step::LookAhead(predecessor),
        // Where a listing would need a proof it is made in the same trip.
        Further::Unknown | Further::Unordered if is_evident => Step::Look,
        Further::Unknown | Further::Unordered => Step::ProveAndLook,
    }
}

impl Ticket {
    /// True when what this link tells of the own node, and of those ahead, is enough for a hold, without a
    /// check of the node: the link is the same since so many were lost, its events come in their order, and
    /// a write is young enough (decision 18).
    pub(super) fn is_evident(&self, losses: u64) -> bool {
        is_same_link(self, losses) && self.acked_recently()
    }

    /// True for the next in a line: one ticket for each line, so that many who wait write nothing. Of the
    /// readers behind a writer all are next.
    fn is_to_keep_fresh(&self, further: &Further) -> bool {
        further.is_next() && self.line.role() == Role::Exclusive && self.generation.session.orders_events()
    }

    /// The place as the line is listed now. Where the reply comes over the link on which all before it was
    /// seen, and a write is young enough, it is evidence that the own node stood first (decision 18).
    pub(super) async fn look(&self) -> Result<Step, WaitError> {
        let losses = self.generation.losses();
        let position = self.list().await?;
        Ok(self.seen_in_listing(position, losses))
    }

    /// Lists the line once one before the predecessor has left, and watches the predecessor in the same trip:
    /// mostly it holds now, and nobody else is ahead.
    pub(super) async fn look_ahead(
        &self,
        predecessor: String,
        watches: &mut LineWatches,
    ) -> Result<Step, WaitError> {
        let losses = self.generation.losses();
        let list = self.generation.session.submit(list_request(&self.line), Lane::Call);
        // Without the watch it is set once the place is known.
        if !planted!(ExistenceWatch) {
            let _ = watches.set(self, &[predecessor]).await?;
        }
        let position = self.position_in(list.await).await?;
        Ok(self.seen_in_listing(position, losses))
    }

    fn seen_in_listing(&self, position: Position, losses: u64) -> Step {
        match position {
            // A listing is a read: it may be old, and does not renew the lease.
            Position::First if !self.is_evident(losses) => Step::Prove,
            position => Step::At(position),
        }
    }

    /// Finds out which of `ahead`, in the order of the line, are left, by watches on them. One whose node is
    /// gone has left for good: its name is not made again, and whoever comes is behind.
    pub(super) async fn ask(&self, ahead: Vec<String>, watches: &mut LineWatches) -> Result<Step, WaitError> {
        let losses = self.generation.losses();
        if !watches.set(self, &ahead).await? {
            return Ok(Step::Look);
        }
        let in_order = watches.are_of_link(&ahead, losses);
        let mut left = watches.left(ahead);
        // Seen before its deletion, if that came first.
        if let Some(fired) = watches.own_fired() {
            return own_fired(self, fired, watches);
        }
        Ok(match left.pop() {
            None if in_order && watches.own.is_some() && self.is_evident(losses) => Step::At(Position::First),
            None => Step::Prove,
            Some(predecessor) => {
                let further = if left.is_empty() { Further::Nobody } else { Further::Few(left) };
                Step::At(Position::Behind { predecessor, further })
            }
        })
    }
}

/// Next step after an event of the own node.
pub(super) fn own_fired(ticket: &Ticket, fired: Fired, watches: &mut LineWatches) -> Result<Step, WaitError> {
    watches.own = None;
    watches.own_changed = true;
    match fired {
        Fired::Event(EventKind::Deleted) => Err(WaitError::Gone),
        Fired::Event(_) => Ok(Step::Look),
        Fired::Ended(end) => Err(ticket.ended(end)),
    }
}

async fn fired_own(own: &mut Option<Box<Watch>>) -> Fired {
    match own {
        Some(watch) => watch.await,
        None => pending().await,
    }
}
