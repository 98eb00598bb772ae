//! Coming to one's turn: from a place in the line to a hold.

use super::draw::list;
use super::hold::Hold;
use super::line::Ticket;
use super::place::Place;
use crate::error::Error;
use crate::session::{Lane, Watch};
use crate::telemetry;

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
pub(super) enum Step {
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
}
