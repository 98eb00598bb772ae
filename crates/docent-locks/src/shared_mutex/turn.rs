use super::cohort::Cohort;
use super::loss::Loss;
use super::turn_fence::TurnFence;
use docent_core::recipe::Hold;
use docent_core::{Error, Released};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

/// Ticket that tasks share. It moves from one turn to the next.
pub(super) struct Ticket {
    pub(super) hold: Hold,
    pub(super) loss: Arc<Loss>,
    /// Number of the next turn.
    pub(super) turns: u32,
}

/// Turn of a task with a ticket that tasks share.
///
/// # On drop
/// The turn ends: the next turn begins, or the ticket is given up. The drop never blocks or panics, even
/// outside a runtime.
pub(crate) struct Turn {
    /// Hold that the ticket's hold lends. It ends before the ticket is passed on, because fields are dropped
    /// in order.
    lent: Hold,
    fence: TurnFence,
    end: TurnEnd,
}

impl Turn {
    /// Creates the next turn with `ticket`, for a task that `waited` for it.
    pub(super) fn new(cohort: Arc<Cohort>, mut ticket: Ticket, waited: Duration) -> Self {
        let lent = ticket.hold.lend(waited);
        let fence = TurnFence::new(lent.fence(), ticket.turns);
        ticket.turns += 1;
        Self { lent, fence, end: TurnEnd { cohort, ticket: Some(ticket) } }
    }

    pub(super) fn fence(&self) -> TurnFence {
        self.fence
    }

    /// Ends the turn. If the ticket is given up, waits until its node is deleted.
    ///
    /// # Errors
    /// Those of [`Hold::release`].
    ///
    /// # Cancel safety
    /// This method is cancel safe: the turn ends in any case.
    pub(crate) async fn release(self) -> Result<Released, Error> {
        let Self { lent, mut end, .. } = self;
        let still_held = lent.check_for("release");
        drop(lent);
        match end.reach() {
            Some(deleted) => deleted.await,
            None => still_held.map(|()| Released::Done),
        }
    }

    /// Ends the turn without passing the ticket on.
    pub(super) fn into_ticket(self) -> Option<Ticket> {
        let Self { lent, mut end, .. } = self;
        drop(lent);
        end.ticket.take()
    }
}

/// End of a turn, which passes the ticket on or gives it up.
struct TurnEnd {
    cohort: Arc<Cohort>,
    /// `None` once the turn has ended.
    ticket: Option<Ticket>,
}

impl TurnEnd {
    /// Begins the next turn, or gives the ticket up and returns the delete of its node.
    fn reach(&mut self) -> Option<BoxFuture<'static, Result<Released, Error>>> {
        let ticket = self.ticket.take()?;
        let ticket = self.cohort.pass_on(ticket)?;
        let deleted = ticket.hold.give_up().boxed();
        // The waiting tasks take their next ticket after the delete of this ticket was submitted.
        self.cohort.wake_next();
        Some(deleted)
    }
}

impl Drop for TurnEnd {
    fn drop(&mut self) {
        drop(self.reach());
    }
}

impl Deref for Turn {
    type Target = Hold;

    fn deref(&self) -> &Hold {
        &self.lent
    }
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lent.fmt(f)
    }
}
