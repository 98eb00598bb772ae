//! Waiting in line: a watch on the one node that blocks, and one on the own node.

use super::draw::list;
use super::hold::Hold;
use super::line::Ticket;
use super::place::Place;
use crate::error::{Error, ErrorKind};
use crate::session::{Cause, Fired, Lane, Outcome, Pending, Reply, SessionEnd, Watch};
use crate::telemetry;
use docent_proto::{Code, EventKind, MultiOp, MultiResult, Request, Response};
use std::time::Duration;

/// Why a ticket did not come to its turn.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum WaitError {
    /// Its node or its session is gone: draw a new one.
    #[error("the ticket is gone")]
    Gone,
    /// Anything else.
    #[error(transparent)]
    Core(#[from] Error),
}

/// Before a request is sent again that was not taken now.
const BUSY: Duration = Duration::from_millis(200);

/// What is known about the line.
enum Step {
    /// List the line again.
    Look,
    /// The listing says this.
    At(Place),
    /// Prove that the own node is there: nobody can be ahead any more.
    Prove,
    /// Prove it, and list in the same trip: others were ahead of the one that left.
    ProveAndLook,
}

impl Ticket {
    /// Waits until nobody is ahead, and then holds what the line is for.
    ///
    /// A ticket waits for the nearest one ahead alone, so that a release wakes one waiter. It is granted without another trip
    /// when the *deletion* of the only one ahead is seen, nothing came for the own node, the link is the one on which both
    /// watches were set and the newest acknowledged write is younger than a sixth of the session timeout; otherwise a check
    /// of the own node comes first. Source: the lock recipe of ZooKeeper's documentation, with Curator's node layout.
    ///
    /// # Errors
    /// [`WaitError::Gone`] when the ticket's node was deleted or its session ended. `ShortLease` when the session timeout is
    /// below four ticks of the server, `SequenceExhausted`, `NoAuth`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe, but you lose your place in the line.
    pub async fn turn(mut self) -> Result<Hold, WaitError> {
        self.refuse_short_lease()?;
        let mut step = match std::mem::replace(&mut self.place, Place::Unlisted) {
            // A ticket that was kept for a while may have lost its node since.
            Place::First if !self.is_fresh() || !self.is_new() => Step::Prove,
            place => Step::At(place),
        };
        let mut own: Option<Box<Watch>> = None;
        loop {
            step = match step {
                Step::At(Place::First) => match self.hold() {
                    Ok(hold) => return Ok(hold),
                    // The lease ran out since the last acknowledged write: a check renews it.
                    Err(ticket) => {
                        self = ticket;
                        self.refuse_short_lease()?;
                        Step::Prove
                    }
                },
                Step::At(Place::Behind { blocker, next }) => self.wait_for(&blocker, next, &mut own).await?,
                Step::At(Place::Gone) => return Err(WaitError::Gone),
                Step::At(Place::Unordered(contenders)) => match self.place_by_creation(contenders).await? {
                    // As a listing, the reads may be old, and do not renew the lease.
                    Place::First => Step::Prove,
                    place => Step::At(place),
                },
                Step::At(Place::Unlisted) | Step::Look => match self.look().await? {
                    // A listing is a read: it may be old, and does not renew the lease.
                    Place::First => Step::Prove,
                    place => Step::At(place),
                },
                Step::Prove => {
                    self.prove().await?;
                    Step::At(Place::First)
                }
                Step::ProveAndLook => {
                    let check = self.submit_check();
                    let list = self.epoch.session.submit(list(&self.line), Lane::Call);
                    match self.proven(check.await).await? {
                        true => Step::At(self.place_in(list.await).await?),
                        false => Step::ProveAndLook,
                    }
                }
            };
        }
    }

    /// Holds what the line is for if nobody is ahead now; gives up the place otherwise.
    ///
    /// # Errors
    /// As [`turn`](Self::turn).
    ///
    /// # Cancel safety
    /// This method is cancel safe, but you lose your place in the line.
    pub async fn turn_now(mut self) -> Result<Option<Hold>, WaitError> {
        let listed_with_the_draw = self.place == Place::First;
        if self.place == Place::Unlisted {
            self.place = self.look().await?;
        }
        if let Place::Unordered(contenders) = &self.place {
            self.place = self.place_by_creation(contenders.clone()).await?;
        }
        match self.place {
            Place::First if !listed_with_the_draw => {
                // A listing of its own is a read: it may be old.
                self.prove().await?;
                self.turn().await.map(Some)
            }
            Place::First => self.turn().await.map(Some),
            Place::Gone => Err(WaitError::Gone),
            Place::Behind { .. } | Place::Unlisted | Place::Unordered(_) => Ok(None),
        }
    }

    /// Holds without regard to others in the line, once the own node is proven. For recipes that count the places themselves.
    ///
    /// # Errors
    /// As [`turn`](Self::turn).
    ///
    /// # Cancel safety
    /// This method is cancel safe, but you lose your place in the line.
    pub async fn claim(mut self) -> Result<Hold, WaitError> {
        loop {
            self.refuse_short_lease()?;
            if !self.is_fresh() || !self.is_new() {
                self.prove().await?;
            }
            match self.hold() {
                Ok(hold) => return Ok(hold),
                // The lease ran out since the last acknowledged write: a check renews it.
                Err(ticket) => self = ticket,
            }
            self.prove().await?;
        }
    }

    /// Sets both watches in one trip and waits for one of them.
    async fn wait_for(
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

    /// True when the ticket was drawn so recently that its listing still counts.
    fn is_new(&self) -> bool {
        self.epoch.clock.now().since(self.drawn) < self.epoch.lease.timeout() / 24
    }

    /// True when a write was acknowledged so recently that the session surely lives.
    fn is_fresh(&self) -> bool {
        let lease = &self.epoch.lease;
        self.epoch.clock.now().since(lease.proof()) < lease.timeout() / 6
    }

    fn own_fired(&self, fired: Fired, own: &mut Option<Box<Watch>>) -> Result<Step, WaitError> {
        *own = None;
        match fired {
            Fired::Event(EventKind::Deleted) => Err(WaitError::Gone),
            Fired::Event(_) => Ok(Step::Look),
            Fired::Ended(end) => Err(self.ended(end)),
        }
    }

    /// Checks, at a quorum, that the own node is there. The acknowledgement renews the lease.
    async fn prove(&self) -> Result<(), WaitError> {
        while !self.proven(self.submit_check().await).await? {}
        Ok(())
    }

    fn submit_check(&self) -> Pending {
        let check = MultiOp::Check { path: self.path.clone(), version: -1 };
        self.epoch.session.submit(Request::Multi(vec![check]), Lane::Call)
    }

    /// What a check says; false when it is to be sent again.
    async fn proven(&self, checked: Outcome) -> Result<bool, WaitError> {
        let Some(reply) = self.reply(checked).await? else { return Ok(false) };
        let code = match reply.result {
            Ok(Response::Multi(results)) => results.first().and_then(|result| match result {
                MultiResult::Failed(code) => Some(*code),
                _ => None,
            }),
            Ok(_) => None,
            Err(code) => Some(code),
        };
        match code {
            None => Ok(true),
            Some(Code::NO_NODE) => Err(WaitError::Gone),
            Some(code) => Err(Error::from_code(code, "acquire").at(self.line.path()).into()),
        }
    }

    async fn look(&self) -> Result<Place, WaitError> {
        let listed = self.epoch.session.submit(list(&self.line), Lane::Call).await;
        self.place_in(listed).await
    }

    async fn place_in(&self, mut listed: Outcome) -> Result<Place, WaitError> {
        loop {
            if let Some(reply) = self.reply(listed).await? {
                return match reply.result {
                    Ok(Response::Children { names, .. }) => Ok(self.line.place(self.name(), &names)),
                    // Without the line there is no ticket.
                    Ok(_) | Err(Code::NO_NODE) => Err(WaitError::Gone),
                    Err(code) => Err(Error::from_code(code, "acquire").at(self.line.path()).into()),
                };
            }
            listed = self.epoch.session.submit(list(&self.line), Lane::Call).await;
        }
    }

    /// The place by the transactions that created the contenders: one read for each, all in one trip.
    async fn place_by_creation(&self, contenders: Vec<String>) -> Result<Place, WaitError> {
        let reads = contenders.into_iter().map(|name| {
            let path = format!("{}/{name}", self.line.full_path());
            let stat = self.epoch.session.submit(Request::Exists { path, watch: false }, Lane::Call);
            (name, stat)
        });
        let mut created = Vec::new();
        for (name, stat) in reads.collect::<Vec<_>>() {
            match self.reply(stat.await).await? {
                None => return Ok(Place::Unlisted),
                Some(reply) => {
                    // Whoever left since the listing may have stepped down, and be there under another name.
                    let Ok(Response::Stat(stat)) = reply.result else { return Ok(Place::Unlisted) };
                    created.push((stat.czxid, name));
                }
            }
        }
        Ok(self.line.place_by_creation(self.name(), &created))
    }

    /// The answer, or `None` when the request is to be sent again: all of them can be repeated. A wait that may have taken hours
    /// is not given up because a server or the own queue is too busy now.
    async fn reply(&self, outcome: Outcome) -> Result<Option<Reply>, WaitError> {
        match outcome {
            Outcome::Reply(reply) if reply.result == Err(Code::SESSION_EXPIRED) => Err(WaitError::Gone),
            Outcome::Reply(reply) if reply.result != Err(Code::THROTTLED) => Ok(Some(reply)),
            Outcome::NotSent(Cause::LinkLost) | Outcome::Unknown(Cause::LinkLost) => Ok(None),
            Outcome::NotSent(Cause::Ended(end)) | Outcome::Unknown(Cause::Ended(end)) => Err(self.ended(end)),
            Outcome::Reply(_) | Outcome::NotSent(_) | Outcome::Unknown(_) => {
                tokio::time::sleep(BUSY).await;
                Ok(None)
            }
        }
    }

    fn ended(&self, end: SessionEnd) -> WaitError {
        match end {
            SessionEnd::Closed => self.error(ErrorKind::Closed).into(),
            SessionEnd::AuthFailed => self.error(ErrorKind::AuthFailed).into(),
            SessionEnd::Expired | SessionEnd::Abandoned | SessionEnd::RolledBack => WaitError::Gone,
        }
    }

    fn refuse_short_lease(&self) -> Result<(), Error> {
        let lease = &self.epoch.lease;
        let accepted = self.line.client().core().config.accept_short_lease;
        if lease.is_empty() {
            return Err(self.error(ErrorKind::ShortLease).because(format!(
                "session timeout {:?} must be longer than its margin of {:?}",
                lease.timeout(),
                lease.margin()
            )));
        }
        if accepted || !lease.is_short() {
            return Ok(());
        }
        Err(self.error(ErrorKind::ShortLease).because(format!(
            "session timeout {:?} must be at least four server ticks of {:?}",
            lease.timeout(),
            lease.tick()
        )))
    }

    /// Turns the ticket into a hold, if the lease is running.
    fn hold(self) -> Result<Hold, Self> {
        match self.epoch.hold(self.path.clone(), self.czxid, self.line.recipe()) {
            Some(held) => {
                telemetry::acquired(self.line.recipe(), self.epoch.clock.now().since(self.drawn));
                Ok(Hold::new(self, held))
            }
            None => Err(self),
        }
    }

    fn error(&self, kind: ErrorKind) -> Error {
        Error::new(kind, "acquire").at(self.line.path())
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
