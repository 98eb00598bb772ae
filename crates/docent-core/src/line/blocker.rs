//! Waiting for the one ahead: a watch on its node, and one on the own.

use super::line::Ticket;
use super::place::Place;
use super::turn::{Step, WaitError};
use crate::error::Error;
use crate::session::{Fired, Lane, Watch};
use docent_proto::{Code, EventKind, Request};

impl Ticket {
    /// Sets both watches in one trip and waits for one of them.
    pub(super) async fn wait_for(
        &self,
        blocker: &str,
        next: bool,
        own: &mut Option<Box<Watch>>,
    ) -> Result<Step, WaitError> {
        let session = &self.epoch.session;
        let losses = self.epoch.losses();
        let blocker_path = format!("{}/{blocker}", self.line.full_path());
        let read = match planted!(ExistenceWatch) {
            true => Request::Exists { path: blocker_path.clone(), watch: true },
            false => watched(blocker_path.clone()),
        };
        let on_blocker = session.submit(read, Lane::Call);
        if own.is_none() && !planted!(HandOffWithoutOwnWatch) {
            let on_own = session.submit(watched(self.path.clone()), Lane::Call).await;
            match self.reply(on_own).await? {
                None => return Ok(Step::Look),
                Some(reply) if reply.result == Err(Code::NO_NODE) => return Err(WaitError::Gone),
                // Without a watch, because we may not read what we created, the node is proven before it counts.
                Some(reply) => *own = reply.watch,
            }
        }
        let blocker_watch = match self.reply(on_blocker.await).await? {
            None => return Ok(Step::Look),
            Some(reply) => match (reply.result, reply.watch) {
                (Ok(_), Some(watch)) => watch,
                (Err(Code::NO_NODE), Some(watch)) if planted!(ExistenceWatch) => watch,
                (Err(Code::NO_NODE), _) => return Ok(Step::Look),
                (Err(Code::NO_AUTH), _) => return self.wait_for_unreadable(blocker_path, own).await,
                (Err(code), _) => return Err(Error::from_code(code, "acquire").at(self.line.path()).into()),
                (Ok(_), None) => return Ok(Step::Look),
            },
        };
        tracing::trace!(ticket = %self.path, blocker, "waiting in line");
        let fired = tokio::select! {
            biased;
            fired = fired_own(own) => return self.own_fired(fired, own),
            fired = blocker_watch => fired,
        };
        match fired {
            Fired::Event(EventKind::Deleted) => {
                // If events come in the order of transactions, a deletion of our own node was seen before.
                if let Some(watch) = own
                    && let Ok(fired) = watch.fired.try_recv()
                {
                    return self.own_fired(fired, own);
                }
                Ok(self.blocker_left(next, losses, own.is_some()))
            }
            Fired::Event(_) => Ok(Step::Look),
            Fired::Ended(end) => Err(self.ended(end)),
        }
    }

    /// Waits for a node that we may not read. `exists` needs no permission, but leaves a watch on a missing node, too, which is
    /// removed then. Some servers do not tell of changes of a node to those who may not read it: so the line is looked at from
    /// time to time as well.
    async fn wait_for_unreadable(
        &self,
        blocker: String,
        own: &mut Option<Box<Watch>>,
    ) -> Result<Step, WaitError> {
        let exists = Request::Exists { path: blocker, watch: true };
        let Some(reply) = self.reply(self.epoch.session.submit(exists, Lane::Call).await).await? else {
            return Ok(Step::Look);
        };
        let (Ok(_), Some(watch)) = (reply.result, reply.watch) else { return Ok(Step::Look) };
        tokio::select! {
            biased;
            fired = fired_own(own) => self.own_fired(fired, own),
            fired = watch => match fired {
                Fired::Event(_) => Ok(Step::ProveAndLook),
                Fired::Ended(end) => Err(self.ended(end)),
            },
            () = tokio::time::sleep(self.epoch.lease.timeout() / 3) => Ok(Step::ProveAndLook),
        }
    }

    /// What follows from the deletion of the nearest one ahead.
    fn blocker_left(&self, next: bool, losses: u64, own_watched: bool) -> Step {
        // After a reconnect the events of the gap come in no particular order, and some sessions never keep it.
        let same_link = self.epoch.session.orders_events() && self.epoch.losses() == losses;
        let own_watched = own_watched || planted!(HandOffWithoutOwnWatch);
        if planted!(WakeUpIsGrant) {
            return Step::At(Place::First);
        }
        match next {
            true if same_link && own_watched && self.is_fresh() => Step::At(Place::First),
            true => Step::Prove,
            false => Step::ProveAndLook,
        }
    }

    fn own_fired(&self, fired: Fired, own: &mut Option<Box<Watch>>) -> Result<Step, WaitError> {
        *own = None;
        match fired {
            Fired::Event(EventKind::Deleted) => Err(WaitError::Gone),
            Fired::Event(_) => Ok(Step::Look),
            Fired::Ended(end) => Err(self.ended(end)),
        }
    }
}

/// A read leaves no watch on a node that is not there.
fn watched(path: String) -> Request {
    Request::GetData { path, watch: true }
}

async fn fired_own(own: &mut Option<Box<Watch>>) -> Fired {
    match own {
        Some(watch) => watch.await,
        None => std::future::pending().await,
    }
}
