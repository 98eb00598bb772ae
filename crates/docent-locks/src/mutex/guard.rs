use super::FenceKind;
use crate::AcquireError;
use crate::acquire::{reentered, release};
use docent_core::recipe::Hold;
use docent_core::{Error, Fence, Guard, Held, Lost};
use std::future::Future;
use std::ops::Deref;
use std::sync::Arc;

/// Holds a [`Mutex`](crate::Mutex). Several guards of one owner share a hold; the lock is free when the last
/// of them is gone.
///
/// It dereferences to [`Held`], which says whether it is still held, runs work for as long as it is, and
/// writes to ZooKeeper only while it is. Where tasks [share tickets](crate::MutexBuilder::share_in_process) a
/// [transaction](Held::transaction) is applied only in this guard's turn.
///
/// Where tasks [share tickets](crate::MutexBuilder::share_in_process) it is one turn with a ticket: what is
/// said of the lock's node is true of all turns with it, and the guard is over at its own end.
///
/// # On drop
/// The last guard's drop releases the lock in the background: the delete is submitted at once, and tried
/// until it is done. It never blocks or panics, also outside a runtime. [`release`](Self::release) says when
/// it is done. Of a shared ticket it is the beginning of the next task's turn instead, if there is to be one.
#[derive(Debug)]
#[must_use = "the lock is released when the guard is dropped"]
pub struct MutexGuard<F = Fence> {
    hold: Arc<Hold>,
    fence: F,
}

impl<F: FenceKind> MutexGuard<F> {
    /// A guard of what an owner has.
    ///
    /// # Errors
    /// `WouldDeadlock` when the hold has no such fence: it is a turn with a ticket that is shared.
    pub(crate) fn new(hold: Arc<Hold>) -> Result<Self, AcquireError> {
        let fence = F::of(&hold).ok_or(AcquireError::WouldDeadlock)?;
        Ok(Self { hold, fence })
    }

    /// The fencing token: higher than the fence of every earlier holder of this path. The same for all guards
    /// of a hold.
    pub fn fence(&self) -> F {
        self.fence
    }

    /// The path of the lock's node.
    ///
    /// Where tasks [share tickets](crate::MutexBuilder::share_in_process) the node is there for all turns
    /// with a ticket: that it exists, as a check in a transaction of your own finds out, does not say that
    /// this guard still has the lock. Only [`transaction`](Held::transaction) is bound to the turn.
    pub fn path(&self) -> String {
        self.hold.path()
    }

    /// Another guard of the same hold, without I/O and for any owner.
    ///
    /// # Errors
    /// [`Lost`] when the lock is lost.
    pub fn reenter(&self) -> Result<Self, Lost> {
        Ok(Self { hold: reentered(Arc::clone(&self.hold))?, fence: self.fence })
    }

    /// Gives up this guard. The last guard of a hold waits until the lock's node is deleted; with a shared
    /// ticket only where no other task has its turn now.
    ///
    /// # Errors
    /// `Lost` when the lock was lost before the servers answered. `Timeout` when no server could be reached
    /// in time, `Closed` when the client was closed meanwhile: the lock is released in the background then,
    /// or with its session.
    ///
    /// # Cancel safety
    /// This method is cancel safe: the release goes on in the background.
    pub async fn release(self) -> Result<(), Error> {
        release(self.hold).await
    }
}

impl<F: FenceKind> Deref for MutexGuard<F> {
    type Target = Held;

    fn deref(&self) -> &Held {
        &self.hold
    }
}

impl<F: FenceKind> Guard for MutexGuard<F> {
    fn release(self) -> impl Future<Output = Result<(), Error>> + Send {
        Self::release(self)
    }
}
