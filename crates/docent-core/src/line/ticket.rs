use super::Line;
use super::draw::list_request;
use super::position::Position;
use super::predecessor;
use super::watches::LineWatches;
use crate::cleanup::{Deletion, OwnedNode};
use crate::error::Error;
use crate::guard::{Beginning, Fence, SessionGeneration};
use crate::hold::Hold;
use crate::session::{Lane, Watch};
use crate::time::Timestamp;
use bytes::Bytes;
use std::fmt;
use std::sync::Arc;
use tracing::Span;

/// Reason why a ticket's turn did not come.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum WaitError {
    /// Its node or its session is gone: take a new one.
    #[error("wait: the ticket is gone")]
    Gone,
    /// Anything else.
    #[error(transparent)]
    Core(#[from] Error),
}

impl WaitError {
    /// True when the same call may succeed later, with a new ticket.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Gone => true,
            Self::Core(error) => error.is_retryable(),
        }
    }

    /// True when something may have been written although it failed.
    pub fn may_have_applied(&self) -> bool {
        matches!(self, Self::Core(error) if error.may_have_applied())
    }

    /// The path it is about, where that is known.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Gone => None,
            Self::Core(error) => error.path(),
        }
    }
}

/// Next step of a ticket on the way to its turn.
pub(super) enum Step {
    /// List the line again.
    Look,
    /// Act on this place.
    At(Position),
    /// Prove that the own node is there: nobody can be ahead any more.
    Prove,
    /// Prove it, and list in the same trip: others may be ahead.
    ProveAndLook,
    /// List the line, and watch this one, the predecessor: another one ahead has left.
    LookAhead(String),
    /// Ask which of these are left, of those ahead.
    Ask(Vec<String>),
}

/// A place in a line. It is kept until it is dropped, its node is deleted or its session ends.
///
/// # On drop
/// The node is deleted: submitted in order with other calls, and tried until it is done. Never blocks or
/// panics, also outside a runtime.
///
/// # Examples
/// ```no_run
/// # use docent_core::recipe::{Line, Hold, WaitError};
/// # async fn example(line: &Line) -> Result<Hold, WaitError> {
/// let ticket = line.take_ticket(None).await?;
/// println!("{} has {:?} contenders ahead", ticket.path(), ticket.ahead());
/// let hold = ticket.wait().await?;
/// # Ok(hold) }
/// ```
#[must_use = "dropping a ticket gives up the place in the line"]
pub struct Ticket {
    pub(super) line: Line,
    pub(super) generation: Arc<SessionGeneration>,
    pub(super) node: Arc<OwnedNode>,
    /// Data of the node.
    pub(super) data: Arc<Bytes>,
    pub(super) taken: Timestamp,
    /// Position in the listing that was made together with the ticket.
    pub(super) position: Position,
    /// Number of contenders ahead in that listing, if the ticket was in it.
    pub(super) ahead: Option<usize>,
    /// Set once it became a hold.
    pub(super) held: bool,
}

impl Ticket {
    /// The path of the ticket's node.
    pub fn path(&self) -> String {
        self.line.client().shared().namespace.relative(&self.node.path)
    }

    /// The fence that the ticket's guard has or would have.
    pub fn fence(&self) -> Fence {
        Fence::from_czxid(self.node.czxid)
    }

    /// Number of contenders that were ahead when it was taken; `None` when that is not known. By now it may
    /// be fewer.
    pub fn ahead(&self) -> Option<usize> {
        self.ahead
    }

    /// Waits until nobody is ahead, and then turns the ticket into a hold.
    ///
    /// A ticket waits for one ahead: for the one before its predecessor, when it lists the line and watches
    /// the predecessor, and then for that. So a release wakes two waiters, or the readers behind a writer,
    /// who need not list the line for that. It is granted without another trip when the *deletion* of the
    /// only one ahead (for a reader: the only writer) is seen, or a listing has nobody ahead, nothing came
    /// for the own node, the link is the one on which the watches were set and the newest acknowledged write
    /// is younger than a sixth of the session timeout, which the next in line sees to; otherwise a check of
    /// the own node comes first (decision 18). Source: the lock recipe of ZooKeeper's documentation, with
    /// Curator's node layout.
    ///
    /// # Errors
    /// [`WaitError::Gone`] when the ticket's node was deleted or its session ended. `ShortLease` when the
    /// session timeout is below four ticks of the server, `SequenceExhausted`, `NoAuth`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe, but you lose your place in the line.
    pub async fn wait(mut self) -> Result<Hold, WaitError> {
        self.refuse_hold()?;
        let mut step = match std::mem::replace(&mut self.position, Position::Unlisted) {
            // A ticket that was kept for a while may have lost its node since: only a fresh write and a new
            // listing make it first without a proof.
            Position::First if !self.acked_recently() || !self.listed_recently() => Step::Prove,
            position => Step::At(position),
        };
        let mut watches = LineWatches::default();
        loop {
            // The own node's end may have been told while another answer was waited for.
            if matches!(step, Step::At(Position::First))
                && let Some(fired) = watches.own_fired()
            {
                step = predecessor::own_fired(&self, fired, &mut watches)?;
            }
            step = match step {
                Step::At(Position::First) => match self.hold(watches.hand_over()) {
                    Ok(hold) => return Ok(hold),
                    // The lease ran out since the last acknowledged write: a check renews it.
                    Err(ticket) => {
                        self = ticket;
                        self.refuse_hold()?;
                        Step::Prove
                    }
                },
                Step::At(Position::Behind { predecessor, further }) => {
                    predecessor::wait_for(&self, predecessor, further, &mut watches).await?
                }
                Step::At(Position::Gone) => return Err(WaitError::Gone),
                Step::At(Position::Unordered(contenders)) => {
                    match self.position_by_creation(contenders).await? {
                        // The reads may be old as a listing may be, and do not renew the lease.
                        Position::First => Step::Prove,
                        position => Step::At(position),
                    }
                }
                Step::At(Position::Unlisted) | Step::Look => self.look().await?,
                Step::LookAhead(predecessor) => self.look_ahead(predecessor, &mut watches).await?,
                Step::Prove => {
                    self.check_own_node().await?;
                    Step::At(Position::First)
                }
                Step::ProveAndLook => {
                    let check = self.submit_check();
                    let list = self.generation.session.submit(list_request(&self.line), Lane::Call);
                    // Asked for after the check, a write at a quorum, the listing is no older than that:
                    // `First` needs no other proof.
                    match self.proven(check.await).await? {
                        true => Step::At(self.position_in(list.await).await?),
                        false => Step::ProveAndLook,
                    }
                }
                // Boxed, because it is rare: few readers have several writers ahead.
                Step::Ask(ahead) => Box::pin(self.ask(ahead, &mut watches)).await?,
            };
        }
    }

    /// Holds if nobody is ahead now; gives up the place otherwise.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    ///
    /// # Cancel safety
    /// This method is cancel safe, but you lose your place in the line.
    pub async fn try_now(mut self) -> Result<Option<Hold>, WaitError> {
        let listed_with_the_draw = self.position == Position::First;
        if self.position == Position::Unlisted {
            self.position = self.list().await?;
        }
        if let Position::Unordered(contenders) = &self.position {
            self.position = self.position_by_creation(contenders.clone()).await?;
        }
        match self.position {
            Position::First if !listed_with_the_draw => {
                // A listing of its own is a read: a server that was cut off may give an old one (decision 3).
                self.check_own_node().await?;
                self.wait().await.map(Some)
            }
            Position::First => self.wait().await.map(Some),
            Position::Gone => Err(WaitError::Gone),
            Position::Behind { .. } | Position::Unlisted | Position::Unordered(_) => Ok(None),
        }
    }

    /// Turns the ticket into a hold, if the lease is running and nothing [refuses](Self::refuse_hold) it.
    /// It has the ticket's watch on its own node, if there is one.
    pub(super) fn hold(mut self, own: Option<Box<Watch>>) -> Result<Hold, Self> {
        let line = &self.line;
        if line.refuse_stopping().is_err() {
            return Err(self);
        }
        let beginning = Beginning::of(Arc::clone(&self.data));
        let Some(state) = self.generation.hold(&self.node, line.recipe(), beginning, own) else {
            return Err(self);
        };
        line.tell_going_on();
        Span::current().record("docent.fence", tracing::field::display(state.fence));
        line.recipe().metrics.acquired(self.generation.clock.now().since(self.taken));
        self.held = true;
        Ok(Hold::new(line.client().clone(), line.path().to_owned(), line.role(), state))
    }

    pub(super) fn name(&self) -> &str {
        self.node.path.rsplit('/').next().unwrap_or_default()
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        // A hold that the ticket became sees to the end of the node.
        if !self.held && self.node.leave() {
            drop(Deletion::new(Arc::clone(&self.node)));
        }
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket")
            .field("path", &self.node.path)
            .field("generation", &self.generation.number)
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}
