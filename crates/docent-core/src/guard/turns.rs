//! Turns of a hold: guards of tasks of one process that have its node one after the other.

use super::{HoldState, LostReason};
use crate::error::Error;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The turn of a hold that is under way, and what keeps it from being passed on.
pub(crate) struct Turns {
    /// Told when the hold is lost.
    on_loss: Box<dyn Fn() + Send + Sync>,
    current: Mutex<Weak<HoldState>>,
    /// Writes of guards' transactions whose outcome is not known. One that is applied late must not be
    /// applied in the turn of another: it is refused once the hold's node is gone (decision 19).
    unsettled: AtomicUsize,
}

impl Turns {
    pub(super) fn new(on_loss: impl Fn() + Send + Sync + 'static) -> Self {
        Self { on_loss: Box::new(on_loss), current: Mutex::default(), unsettled: AtomicUsize::new(0) }
    }

    pub(super) fn begin(&self, turn: &Arc<HoldState>) {
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(turn);
    }

    /// The hold is lost, and so is the turn that is under way.
    pub(super) fn lost(&self, reason: LostReason) {
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner).upgrade();
        if let Some(turn) = current.filter(|_| !planted!(TurnAfterLoss)) {
            turn.mark_lost(reason);
        }
        self.tell();
    }

    pub(super) fn tell(&self) {
        (self.on_loss)();
    }

    /// True when no write of an earlier turn may still be applied; for one who has ended that turn.
    pub(crate) fn are_settled(&self) -> bool {
        // The end of the turn is stored, then the count is read; a write is counted, then the end is read.
        // With both fences one of the two sees the other.
        fence(Ordering::SeqCst);
        self.unsettled.load(Ordering::SeqCst) == 0
    }
}

impl fmt::Debug for Turns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turns").field("unsettled", &self.unsettled).finish_non_exhaustive()
    }
}

/// Write of a transaction of guards, some of which may be turns.
///
/// # On drop
/// Its outcome stays unknown: the holds are not passed on any more.
pub(crate) struct Unsettled(Vec<Arc<HoldState>>);

impl Unsettled {
    /// Counts the write before it is looked whether the guards hold: either a turn that ends meanwhile knows
    /// of it, or it is refused.
    pub(crate) fn new(held: &[Arc<HoldState>]) -> Self {
        let turns = held.iter().filter(|held| held.of_turns().is_some()).cloned();
        let write = Self(turns.collect());
        write.each(|turns| turns.unsettled.fetch_add(1, Ordering::SeqCst));
        // The end of a turn is kept with release and acquire alone: without a fence its read may come before
        // the count (`Turns::are_settled`).
        fence(Ordering::SeqCst);
        write
    }

    /// Waits for the `write`, which may stay unsettled.
    pub(crate) async fn during<T>(self, write: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        let done = write.await;
        self.settle(done.as_ref().err());
        done
    }

    /// It was answered, or failed with `error`.
    fn settle(self, error: Option<&Error>) {
        if error.is_none_or(|error| !error.may_have_applied()) {
            self.each(|turns| turns.unsettled.fetch_sub(1, Ordering::SeqCst));
        }
    }

    fn each(&self, count: impl Fn(&Turns) -> usize) {
        for turns in self.0.iter().filter_map(|held| held.of_turns()) {
            count(turns);
        }
    }
}
