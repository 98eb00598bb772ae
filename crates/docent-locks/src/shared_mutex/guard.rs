use super::TurnFence;
use crate::acquire::reentered;
use crate::lock_hold::LockHold;
use docent_core::{Error, Guard, Held, Lost};
use std::future::Future;
use std::ops::Deref;

/// Holds a [`SharedMutex`](crate::SharedMutex). Several guards of one owner share a turn; the turn ends with
/// the last of them.
///
/// It dereferences to [`Held`], which tells whether the guard is held, runs work while it is, and starts
/// [transactions](Held::transaction) that are applied only in this turn. For a turn [`Held::fence`] returns
/// `None`: call [`fence`](Self::fence).
///
/// # On drop
/// The drop of the last guard ends the turn. If another task waits, and the [limits] allow it, that task has
/// the lock at once. Otherwise the lock is released in the background: the delete of its node is submitted at
/// once, and tried until it is done. A drop never blocks or panics, also outside a runtime.
///
/// [limits]: crate::SharedMutexBuilder::limit
#[derive(Debug)]
#[must_use = "the turn ends when its last guard is dropped"]
pub struct SharedMutexGuard {
    hold: LockHold,
}

impl SharedMutexGuard {
    pub(super) fn new(hold: LockHold) -> Self {
        Self { hold }
    }

    /// The fencing token: higher than the fence of every earlier holder of this path. The same for all guards
    /// of a turn.
    pub fn fence(&self) -> TurnFence {
        match &self.hold {
            LockHold::Own(hold) => hold.fence().into(),
            LockHold::Turn(turn) => turn.fence(),
        }
    }

    /// The path of the ticket's node.
    ///
    /// The node stays while the ticket is passed on. So a check of this path in a transaction of your own
    /// does not prove that this guard is held. Use the guard's [`transaction`](Held::transaction).
    pub fn path(&self) -> String {
        self.hold.path()
    }

    /// Returns another guard of the same turn, without I/O and for any owner.
    ///
    /// # Errors
    /// [`Lost`] if the lock is lost.
    pub fn reenter(&self) -> Result<Self, Lost> {
        Ok(Self::new(reentered(self.hold.clone())?))
    }

    /// Releases this guard. The last guard of a turn returns at once if another task has the next turn.
    /// Otherwise it waits until the ticket's node is deleted.
    ///
    /// # Errors
    /// `Lost` if the lock was lost before the servers answered. `Timeout` if no server could be reached in
    /// time, `Closed` if the client was closed meanwhile: the lock is released in the background then, or
    /// with its session.
    ///
    /// # Cancel safety
    /// This method is cancel safe: the release goes on in the background.
    pub async fn release(self) -> Result<(), Error> {
        self.hold.release().await
    }
}

impl Deref for SharedMutexGuard {
    type Target = Held;

    fn deref(&self) -> &Held {
        &self.hold
    }
}

impl Guard for SharedMutexGuard {
    fn release(self) -> impl Future<Output = Result<(), Error>> + Send {
        Self::release(self)
    }
}
