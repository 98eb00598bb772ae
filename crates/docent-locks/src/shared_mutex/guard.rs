use super::TurnFence;
use crate::acquire::reentered;
use crate::lock_hold::LockHold;
use docent_core::{Error, Guard, Held, Lost, Released};
use std::future::Future;
use std::ops::Deref;

/// Guard of a [`SharedMutex`](crate::SharedMutex). Several guards of one owner share a turn; the turn ends
/// with the last of them.
///
/// Dereferences to [`Held`], which reports whether the guard is held, runs work only while it is held, and
/// starts [transactions](Held::transaction) that are applied only in this turn. [`Held::fence`] returns
/// `None` for a turn: call [`fence`](Self::fence) instead.
///
/// # On drop
/// Dropping the last guard ends the turn. If another task waits and the [limits] allow it, that task has the
/// lock immediately. Otherwise the lock is released in the background: the delete of its node is submitted
/// immediately and retried until it succeeds. The drop never blocks or panics, even outside a runtime.
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

    /// Returns the fencing token, which is higher than the fence of every earlier holder of this path. All
    /// guards of a turn have the same fence.
    pub fn fence(&self) -> TurnFence {
        match &self.hold {
            LockHold::Own(hold) => hold.fence().into(),
            LockHold::Turn(turn) => turn.fence(),
        }
    }

    /// Returns the path of the ticket's node.
    ///
    /// The node stays while the ticket is passed on. A check of this path in a transaction of your own
    /// therefore does not prove that this guard is held. Use the guard's [`transaction`](Held::transaction)
    /// instead.
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

    /// Releases this guard. The last guard of a turn returns immediately if another task has the next turn.
    /// Otherwise it waits until the ticket's node is deleted, at most for the operation timeout and until the
    /// end of the lease. [`Released::Pending`] is returned if that takes longer, as in an outage: the lock is
    /// then released in the background or with its session.
    ///
    /// # Errors
    /// `Lost` if the lock was lost before this call. `NoAuth` and other refusals of the servers. `Closed` if
    /// the client was closed: the lock is then released with its session.
    ///
    /// # Cancel safety
    /// This method is cancel safe: the release continues in the background.
    pub async fn release(self) -> Result<Released, Error> {
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
    fn release(self) -> impl Future<Output = Result<Released, Error>> + Send {
        Self::release(self)
    }
}
