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
/// writes to ZooKeeper only while it is.
///
/// # On drop
/// The last guard's drop releases the lock in the background: the delete is submitted at once, and tried
/// until it is done. It never blocks or panics, also outside a runtime. [`release`](Self::release) says when
/// it is done.
#[derive(Debug)]
#[must_use = "the lock is released when the guard is dropped"]
pub struct MutexGuard {
    hold: Arc<Hold>,
}

impl MutexGuard {
    pub(super) fn new(hold: Arc<Hold>) -> Self {
        Self { hold }
    }

    /// The fencing token: higher than the fence of every earlier holder of this path. The same for all guards
    /// of a hold.
    pub fn fence(&self) -> Fence {
        self.hold.fence()
    }

    /// The path of the lock's node.
    pub fn path(&self) -> String {
        self.hold.path()
    }

    /// Another guard of the same hold, without I/O and for any owner.
    ///
    /// # Errors
    /// [`Lost`] when the lock is lost.
    pub fn reenter(&self) -> Result<Self, Lost> {
        Ok(Self::new(reentered(Arc::clone(&self.hold))?))
    }

    /// Gives up this guard. The last guard of a hold waits until the lock's node is deleted.
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

impl Deref for MutexGuard {
    type Target = Held;

    fn deref(&self) -> &Held {
        &self.hold
    }
}

impl Guard for MutexGuard {
    fn release(self) -> impl Future<Output = Result<(), Error>> + Send {
        Self::release(self)
    }
}
