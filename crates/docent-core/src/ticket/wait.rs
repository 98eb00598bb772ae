//! Waiting in line: a watch on the one node that blocks, and one on the own node.

use super::draw::list;
use super::hold::Hold;
use super::line::Ticket;
use super::place::Place;
use crate::error::{Error, ErrorKind};
use crate::session::{Cause, Fired, Lane, Outcome, Reply, SessionEnd, Watch};
use docent_proto::{Code, EventKind, MultiOp, Request, Response};

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
            Place::Unlisted => Step::Look,
            place => Step::At(place),
        };
        let mut own: Option<Watch> = None;
        loop {
            step = match step {
                Step::At(Place::First) => match self.hold() {
                    Ok(hold) => return Ok(hold),
                    // The lease ran out since the last acknowledged write: a check renews it.
                    Err(ticket) => {
                        self = ticket;
                        Step::Prove
                    }
                },
                Step::At(Place::Behind { blocker, next }) => self.wait_for(&blocker, next, &mut own).await?,
                Step::At(Place::Gone) => return Err(WaitError::Gone),
                Step::At(Place::Unordered) => return Err(self.error(ErrorKind::SequenceExhausted).into()),
                Step::At(Place::Unlisted) | Step::Look => Step::At(self.look().await?),
                Step::Prove => {
                    self.prove().await?;
                    Step::At(Place::First)
                }
                Step::ProveAndLook => {
                    let list = self.epoch.session.submit(list(&self.line), Lane::Call);
                    let check = self.prove();
                    check.await?;
                    Step::At(self.place_in(list.await).await?)
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
        if self.place == Place::Unlisted {
            self.place = self.look().await?;
        }
        match self.place {
            Place::First => self.turn().await.map(Some),
            Place::Gone => Err(WaitError::Gone),
            Place::Unordered => Err(self.error(ErrorKind::SequenceExhausted).into()),
            Place::Behind { .. } | Place::Unlisted => Ok(None),
        }
    }

    /// Sets both watches in one trip and waits for one of them.
    async fn wait_for(&self, blocker: &str, next: bool, own: &mut Option<Watch>) -> Result<Step, WaitError> {
        let session = &self.epoch.session;
        let losses = self.epoch.losses();
        let blocker_path = format!("{}/{blocker}", self.line.full_path());
        let on_blocker = session.submit(watched(blocker_path), Lane::Call);
        if own.is_none() {
            let on_own = session.submit(watched(self.path.clone()), Lane::Call).await;
            match self.reply(on_own)? {
                None => return Ok(Step::Look),
                Some(reply) if reply.result == Err(Code::NO_NODE) => return Err(WaitError::Gone),
                Some(reply) => *own = reply.watch,
            }
        }
        let blocker_watch = match self.reply(on_blocker.await)? {
            None => return Ok(Step::Look),
            Some(reply) => match (reply.result, reply.watch) {
                (Ok(_), Some(watch)) => watch,
                (Err(Code::NO_NODE), _) => return Ok(Step::Look),
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
                // Events of a link come in the order of transactions: a deletion of our own node was seen before.
                if let Some(watch) = own
                    && let Ok(fired) = watch.fired.try_recv()
                {
                    return self.own_fired(fired, own);
                }
                Ok(self.blocker_left(next, losses))
            }
            Fired::Event(_) => Ok(Step::Look),
            Fired::Ended(end) => Err(self.ended(end)),
        }
    }

    /// What follows from the deletion of the nearest one ahead.
    fn blocker_left(&self, next: bool, losses: u64) -> Step {
        let lease = &self.epoch.lease;
        let age = self.epoch.clock.now().since(lease.proof());
        // After a reconnect the events of the gap come in no particular order.
        let same_link = self.epoch.losses() == losses;
        match next {
            true if same_link && age < lease.timeout() / 6 => Step::At(Place::First),
            true => Step::Prove,
            false => Step::ProveAndLook,
        }
    }

    fn own_fired(&self, fired: Fired, own: &mut Option<Watch>) -> Result<Step, WaitError> {
        *own = None;
        match fired {
            Fired::Event(EventKind::Deleted) => Err(WaitError::Gone),
            Fired::Event(_) => Ok(Step::Look),
            Fired::Ended(end) => Err(self.ended(end)),
        }
    }

    /// Checks, at a quorum, that the own node is there. The acknowledgement renews the lease.
    async fn prove(&self) -> Result<(), WaitError> {
        loop {
            let check = MultiOp::Check { path: self.path.clone(), version: -1 };
            let outcome = self.epoch.session.submit(Request::Multi(vec![check]), Lane::Call).await;
            let Some(reply) = self.reply(outcome)? else { continue };
            return match reply.result {
                Ok(Response::Multi(results)) if !is_failure(&results) => Ok(()),
                Ok(_) => Err(WaitError::Gone),
                Err(code) => Err(Error::from_code(code, "acquire").at(self.line.path()).into()),
            };
        }
    }

    async fn look(&self) -> Result<Place, WaitError> {
        let listed = self.epoch.session.submit(list(&self.line), Lane::Call).await;
        self.place_in(listed).await
    }

    async fn place_in(&self, mut listed: Outcome) -> Result<Place, WaitError> {
        loop {
            if let Some(reply) = self.reply(listed)? {
                return match reply.result {
                    Ok(Response::Children { names, .. }) => {
                        Ok(Place::find(self.name(), &names, self.line.marker()))
                    }
                    // Without the line there is no ticket.
                    Ok(_) | Err(Code::NO_NODE) => Err(WaitError::Gone),
                    Err(code) => Err(Error::from_code(code, "acquire").at(self.line.path()).into()),
                };
            }
            listed = self.epoch.session.submit(list(&self.line), Lane::Call).await;
        }
    }

    /// The answer, or `None` when the request is to be sent again: all of them can be repeated.
    fn reply(&self, outcome: Outcome) -> Result<Option<Reply>, WaitError> {
        match outcome {
            Outcome::Reply(reply) if reply.result == Err(Code::SESSION_EXPIRED) => Err(WaitError::Gone),
            Outcome::Reply(reply) => Ok(Some(reply)),
            Outcome::NotSent(cause) | Outcome::Unknown(cause) => match cause {
                Cause::LinkLost => Ok(None),
                Cause::Ended(end) => Err(self.ended(end)),
                Cause::QueueFull | Cause::Deadline | Cause::TooLarge { .. } => {
                    Err(self.error(ErrorKind::Overloaded).into())
                }
            },
        }
    }

    fn ended(&self, end: SessionEnd) -> WaitError {
        match end {
            SessionEnd::Closed => self.error(ErrorKind::Closed).into(),
            SessionEnd::Expired | SessionEnd::Abandoned => WaitError::Gone,
        }
    }

    fn refuse_short_lease(&self) -> Result<(), Error> {
        let lease = &self.epoch.lease;
        if !lease.is_short() || self.line.client().core().config.accept_short_lease {
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
        match self.epoch.hold(self.path.clone(), self.czxid) {
            Some(held) => Ok(Hold::new(self, held)),
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

fn is_failure(results: &[docent_proto::MultiResult]) -> bool {
    results.iter().any(|result| matches!(result, docent_proto::MultiResult::Failed(_)))
}

async fn fired_own(own: &mut Option<Watch>) -> Fired {
    match own {
        Some(watch) => watch.await,
        None => std::future::pending().await,
    }
}
