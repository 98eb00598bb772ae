//! Waiting for the predecessor, the nearest contender ahead: a watch on its node, and one on the own node.

use super::position::{Further, Position};
use super::ticket::Step;
use super::{Ticket, WaitError};
use crate::session::{Fired, Lane, Watch};
use docent_proto::{Code, EventKind, Request};

/// Sets both watches in one trip and waits until one fires.
pub(super) async fn wait_for(
    ticket: &Ticket,
    predecessor: &str,
    further: Further,
    own: &mut Option<Box<Watch>>,
) -> Result<Step, WaitError> {
    let session = &ticket.generation.session;
    let losses = ticket.generation.losses();
    let predecessor_path = format!("{}/{predecessor}", ticket.line.full_path());
    let read = match planted!(ExistenceWatch) {
        true => Request::Exists { path: predecessor_path.clone(), watch: true },
        false => watched(predecessor_path.clone()),
    };
    let on_predecessor = session.submit(read, Lane::Call);
    if own.is_none() && !planted!(HandOffWithoutOwnWatch) {
        let on_own = session.submit(watched(ticket.node.path.clone()), Lane::Call).await;
        match ticket.reply(on_own).await? {
            None => return Ok(Step::Look),
            Some(reply) if reply.result == Err(Code::NO_NODE) => return Err(WaitError::Gone),
            // Without a watch, because we may not read the node we created, `predecessor_left` asks for a
            // proof of the node.
            Some(reply) => *own = reply.watch,
        }
    }
    let predecessor_watch = match ticket.reply(on_predecessor.await).await? {
        None => return Ok(Step::Look),
        Some(reply) => match (reply.result, reply.watch) {
            (Ok(_), Some(watch)) => watch,
            (Err(Code::NO_NODE), Some(watch)) if planted!(ExistenceWatch) => watch,
            (Err(Code::NO_NODE), _) => return Ok(Step::Look),
            (Err(Code::NO_AUTH), _) => return wait_for_unreadable(ticket, predecessor_path, own).await,
            (Err(code), _) => return Err(ticket.line.refused(code).into()),
            (Ok(_), None) => return Ok(Step::Look),
        },
    };
    tracing::trace!(ticket = %ticket.node.path, predecessor, "waiting in line");
    let fired = tokio::select! {
        biased;
        fired = fired_own(own) => return own_fired(ticket, fired, own),
        fired = predecessor_watch => fired,
    };
    match fired {
        Fired::Event(EventKind::Deleted) => {
            // Events of a link come in the order of their transactions: a deletion of our own node before
            // the predecessor's has fired by now, though `select` may not have polled that watch since.
            if let Some(watch) = own
                && let Ok(fired) = watch.fired.try_recv()
            {
                return own_fired(ticket, fired, own);
            }
            Ok(predecessor_left(ticket, further, losses, own.is_some()))
        }
        // It holds now, and has recorded that, or somebody asked it to leave: its place is the same.
        Fired::Event(EventKind::DataChanged) if is_same_link(ticket, losses) => {
            Ok(Step::At(Position::Behind { predecessor: predecessor.to_owned(), further }))
        }
        Fired::Event(_) => Ok(Step::Look),
        Fired::Ended(end) => Err(ticket.ended(end)),
    }
}

/// True while watches tell of what happened in its order since the link was lost so many times.
fn is_same_link(ticket: &Ticket, losses: u64) -> bool {
    ticket.generation.session.orders_events() && ticket.generation.losses() == losses
}

/// Waits for a predecessor that we may not read. `exists` needs no permission, but leaves a watch on a
/// missing node, too, which is removed then. Some servers do not tell a client of changes of a node that
/// it may not read: so the line is listed from time to time as well.
async fn wait_for_unreadable(
    ticket: &Ticket,
    predecessor: String,
    own: &mut Option<Box<Watch>>,
) -> Result<Step, WaitError> {
    let exists = Request::Exists { path: predecessor, watch: true };
    let Some(reply) = ticket.reply(ticket.generation.session.submit(exists, Lane::Call).await).await? else {
        return Ok(Step::Look);
    };
    let (Ok(_), Some(watch)) = (reply.result, reply.watch) else { return Ok(Step::Look) };
    tokio::select! {
        biased;
        fired = fired_own(own) => own_fired(ticket, fired, own),
        fired = watch => match fired {
            Fired::Event(_) => Ok(Step::ProveAndLook),
            Fired::Ended(end) => Err(ticket.ended(end)),
        },
        () = tokio::time::sleep(ticket.generation.lease.timeout() / 3) => Ok(Step::ProveAndLook),
    }
}

/// Next step after the deletion of the predecessor, which stood behind those that are `further` ahead.
fn predecessor_left(ticket: &Ticket, further: Further, losses: u64, own_watched: bool) -> Step {
    // Granted without another trip only where our own node surely stands (decision 3). After a reconnect
    // the server reports the changes of the gap path by path, so that the predecessor's deletion may be seen
    // before an earlier one of our own node; sessions of `zookeeper-client` never keep the order.
    let same_link = is_same_link(ticket, losses);
    let own_watched = own_watched || planted!(HandOffWithoutOwnWatch);
    if planted!(WakeUpIsGrant) {
        return Step::At(Position::First);
    }
    // Without a fresh write the hold would begin with little left of its lease; and contenders further
    // ahead than the predecessor show only when they are asked for, or in a listing.
    match further {
        Further::Nobody if same_link && own_watched && ticket.acked_recently() => Step::At(Position::First),
        Further::Nobody => Step::Prove,
        Further::Few(ahead) => Step::ProveAndAsk(ahead),
        Further::Some => Step::ProveAndLook,
    }
}

fn own_fired(ticket: &Ticket, fired: Fired, own: &mut Option<Box<Watch>>) -> Result<Step, WaitError> {
    *own = None;
    match fired {
        Fired::Event(EventKind::Deleted) => Err(WaitError::Gone),
        Fired::Event(_) => Ok(Step::Look),
        Fired::Ended(end) => Err(ticket.ended(end)),
    }
}

/// Request that reads a node and watches it. Unlike `exists` it leaves no watch where there is no node.
fn watched(path: String) -> Request {
    Request::GetData { path, watch: true }
}

async fn fired_own(own: &mut Option<Box<Watch>>) -> Fired {
    match own {
        Some(watch) => watch.await,
        None => std::future::pending().await,
    }
}
