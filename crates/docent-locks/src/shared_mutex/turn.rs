use super::cohort::Cohort;
use super::loss::Loss;
use docent_core::recipe::Hold;
use docent_core::{Error, ErrorKind, Fence, Released};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Deref;
use std::str::FromStr;
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

/// Fencing token of a [`SharedMutexGuard`](crate::SharedMutexGuard): the ticket's [`Fence`] and the number of
/// the guard's turn with that ticket. It increases from one holder of a path to the next.
///
/// A turn fence does not fit in 64 bits. Fences of tickets are transaction ids, and the next ticket's id may
/// be higher by only one, which leaves no numbers for the turns in between. The id of a write made in each
/// turn is not usable either: the next ticket may be older than that write, and its fence would be too low.
///
/// # In databases and messages
/// Store a fence as two columns and compare them as a row: `(ticket, turn) <= (?, ?)`, which PostgreSQL and
/// SQLite (3.15 or later) support. Or store the 96-bit number [`as_u128`](Self::as_u128) in a column such as
/// `NUMERIC(29)`. If guards of plain locks write to the same store, use `TurnFence::from(fence)` for them,
/// which has turn 0. The text form is the ticket, a dot and the turn; texts do not sort in the order of the
/// fences.
///
/// ```
/// # use docent_locks::TurnFence;
/// let fence: TurnFence = "4294967301.7".parse()?;
/// assert_eq!((fence.ticket().as_i64(), fence.turn()), (4294967301, 7));
/// assert!(fence < "4294967301.10".parse()? && fence < "4294967302.0".parse()?);
/// assert_eq!(TurnFence::new(fence.ticket(), fence.turn()), fence);
/// # Ok::<(), docent_locks::ParseTurnFenceError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TurnFence {
    ticket: Fence,
    turn: u32,
}

impl TurnFence {
    /// Creates the fence of these two numbers, for example as read back from a store.
    pub fn new(ticket: Fence, turn: u32) -> Self {
        Self { ticket, turn }
    }

    /// Returns the fence of the ticket. Guards with other turns of the same ticket have the same value, so
    /// the value does not order these guards.
    pub fn ticket(self) -> Fence {
        self.ticket
    }

    /// Returns the number of the turn with that ticket, counted from 0.
    pub fn turn(self) -> u32 {
        self.turn
    }

    /// Returns ticket and turn as one number below 2^96 that sorts like the fence, for stores that support
    /// such numbers.
    pub fn as_u128(self) -> u128 {
        u128::from(self.ticket.as_u64()) << u32::BITS | u128::from(self.turn)
    }
}

impl From<Fence> for TurnFence {
    fn from(ticket: Fence) -> Self {
        Self { ticket, turn: 0 }
    }
}

impl fmt::Display for TurnFence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.ticket, self.turn)
    }
}

/// Error of parsing a text that is not a [`TurnFence`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("fence {0:?} must consist of two decimal numbers, the ticket and the turn, separated by a dot")]
pub struct ParseTurnFenceError(String);

impl From<ParseTurnFenceError> for Error {
    fn from(error: ParseTurnFenceError) -> Self {
        Self::of_recipe(ErrorKind::InvalidInput, "parse", error)
    }
}

impl FromStr for TurnFence {
    type Err = ParseTurnFenceError;

    fn from_str(text: &str) -> Result<Self, ParseTurnFenceError> {
        let parse = || {
            let (ticket, turn) = text.split_once('.')?;
            Some(Self { ticket: ticket.parse().ok()?, turn: turn.parse().ok()? })
        };
        parse().ok_or_else(|| ParseTurnFenceError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fence(ticket: u64, turn: u32) -> TurnFence {
        TurnFence::new(Fence::try_from(ticket).unwrap(), turn)
    }

    #[test]
    fn turn_fences_lie_between_their_ticket_and_the_next_one() {
        let last = i64::MAX.unsigned_abs();
        let fences = [fence(0, 0), fence(7, 0), fence(7, 1), fence(7, u32::MAX), fence(8, 0), fence(last, 1)];
        assert!(fences.is_sorted() && fences.map(TurnFence::as_u128).is_sorted());
        assert!(fences.windows(2).all(|pair| pair[0] < pair[1] && pair[0].as_u128() < pair[1].as_u128()));
        assert!(fence(last, u32::MAX).as_u128() < 1 << 96);
        assert_eq!(TurnFence::from(Fence::try_from(7_u64).unwrap()), fences[1]);
    }

    #[test]
    fn a_fence_round_trips_through_text_and_json() {
        let fence = fence(4_294_967_301, 17);
        assert_eq!(fence.to_string().parse(), Ok(fence));
        let json = serde_json::to_string(&fence).unwrap();
        assert_eq!(json, r#"{"ticket":4294967301,"turn":17}"#);
        assert_eq!(serde_json::from_str::<TurnFence>(&json).unwrap(), fence);
        for text in ["", "7", ".1", "7.", "7.-1", "7.4294967296", "-1.0"] {
            assert!(text.parse::<TurnFence>().is_err(), "{text:?}");
        }
    }
}
