use super::Hold;
use crate::cleanup::Deletion;
use crate::guard::{TurnFence, Turns};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

/// Hold that tasks of one process have one after the other, each for a turn, without a trip (decision 19).
///
/// Clones are the same. The hold is given up by the end of a turn that is [not followed](TurnOver::over) by
/// another, and at the latest by the drop of the last clone and turn.
#[derive(Clone)]
pub struct Relay(Arc<Shared>);

struct Shared {
    hold: Hold,
    /// Turns that have begun.
    turns: AtomicU32,
}

/// Successor of a turn.
pub trait TurnOver: Send + Sync {
    /// Called when a turn of `relay` is over, from its release or drop, on any thread: neither blocks nor
    /// panics. True when the next turn has begun; when it is false the hold is given up.
    fn over(self: Arc<Self>, relay: &Relay) -> bool;

    /// Called when the hold was given up at the end of a turn, and the delete of its node submitted.
    fn given_up(self: Arc<Self>);
}

impl Relay {
    /// Lets tasks have `hold` turn by turn. `on_loss` is called when it is lost, on any thread.
    pub fn new(hold: Hold, on_loss: impl Fn() + Send + Sync + 'static) -> Self {
        hold.state().share(on_loss);
        Self(Arc::new(Shared { hold, turns: AtomicU32::new(0) }))
    }

    /// True for clones.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// True once the hold is known to be lost. Does not look at the clock.
    pub fn is_lost(&self) -> bool {
        self.0.hold.state().lost_reason().is_some()
    }

    /// True when another turn may begin: it is held, nobody asked for it, the client is not shutting down,
    /// and no write of an earlier turn may still be applied.
    pub fn may_go_on(&self) -> bool {
        let (hold, state) = (&self.0.hold, self.0.hold.state());
        let is_held = planted!(TurnAfterLoss) || hold.is_held();
        let shared = hold.client().shared();
        is_held
            && !state.revoked().is_cancelled()
            && !shared.refuses(state.recipe().stage())
            && state.turns().is_none_or(Turns::are_settled)
    }

    /// The next turn, which was `waited` for; `over` is told of its end. It is for one guard: whoever begins
    /// a turn sees to it that the one before is over.
    pub fn turn(&self, waited: Duration, over: Arc<dyn TurnOver>) -> Hold {
        let hold = &self.0.hold;
        let state = hold.state().turn();
        let number = self.0.turns.fetch_add(1, Ordering::Relaxed);
        if number > 0 {
            // The ticket has told of the first one.
            let metrics = &state.recipe().metrics;
            metrics.acquired(waited);
            metrics.passed_on();
        }
        let turn = Turn { relay: self.clone(), number, over, is_over: AtomicBool::new(false) };
        Hold::of_turn(hold, state, turn)
    }

    /// Gives the hold up; `None` when that was done before.
    fn give_up(&self) -> Option<Deletion> {
        // It is marked released before its node is deleted: that is no loss.
        self.0.hold.state().release();
        self.0.hold.leave()
    }
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relay").field("hold", &self.0.hold).field("turns", &self.0.turns).finish()
    }
}

/// A hold's part in a relay.
pub(super) struct Turn {
    relay: Relay,
    number: u32,
    over: Arc<dyn TurnOver>,
    is_over: AtomicBool,
}

impl Turn {
    /// It is over. The delete of the node, if the hold was given up with it.
    pub(super) fn end(&self) -> Option<Deletion> {
        if self.is_over.swap(true, Ordering::AcqRel) || Arc::clone(&self.over).over(&self.relay) {
            return None;
        }
        let deletion = self.relay.give_up();
        Arc::clone(&self.over).given_up();
        deletion
    }

    /// Nobody had it: its end tells nobody.
    pub(super) fn forgo(&self) {
        self.is_over.store(true, Ordering::Release);
    }
}

impl Hold {
    /// The fence with the number of its turn, 0 for a hold that is no turn.
    pub fn turn_fence(&self) -> TurnFence {
        TurnFence::new(self.fence(), self.turn().map_or(0, |turn| turn.number))
    }

    /// True when it is a turn of a [`Relay`].
    pub fn is_turn(&self) -> bool {
        self.turn().is_some()
    }

    /// Drops a turn that nobody had, without telling its [`TurnOver`].
    pub fn forgo(self) {
        self.turn().into_iter().for_each(Turn::forgo);
    }
}
