use crate::acquire::{reentered, release};
use docent_core::recipe::Hold;
use docent_core::{Error, Fence, Guard, Held, Lost, Released};
use std::future::Future;
use std::ops::Deref;
use std::sync::Arc;

/// Guard of a [`Mutex`](crate::Mutex). Several guards of one owner share a hold; the lock is released with
/// the last of them.
///
/// Dereferences to [`Held`], which reports whether the lock is still held, runs work only while the lock is
/// held, and writes to ZooKeeper only while the lock is held.
///
/// # On drop
/// Dropping the last guard releases the lock in the background: the delete of its node is submitted
/// immediately and retried until it succeeds. The drop never blocks or panics, even outside a runtime. Call
/// [`release`](Self::release) to wait until the node is deleted.
#[derive(Debug)]
#[must_use = "the lock is released when the guard is dropped"]
pub struct MutexGuard {
    hold: Arc<Hold>,
}

impl MutexGuard {
    pub(super) fn new(hold: Arc<Hold>) -> Self {
        Self { hold }
    }

    /// Returns the fencing token, which is higher than the fence of every earlier holder of this path. All
    /// guards of a hold have the same fence.
    pub fn fence(&self) -> Fence {
        self.hold.fence()
    }

    /// Returns the path of the lock's node.
    pub fn path(&self) -> String {
        self.hold.path()
    }

    /// Returns another guard of the same hold, without I/O and for any owner.
    ///
    /// # Errors
    /// [`Lost`] if the lock is lost.
    pub fn reenter(&self) -> Result<Self, Lost> {
        Ok(Self::new(reentered(Arc::clone(&self.hold))?))
    }

    /// Releases this guard. The last guard of a hold waits until the lock's node is deleted, at most for the
    /// operation timeout and until the end of the lease. [`Released::Pending`] is returned if that takes
    /// longer, as in an outage: the lock is then released in the background or with its session.
    ///
    /// # Errors
    /// `Lost` if the lock was lost before this call. `NoAuth` and other refusals of the servers. `Closed` if
    /// the client was closed: the lock is then released with its session.
    ///
    /// # Cancel safety
    /// This method is cancel safe: the release continues in the background.
    pub async fn release(self) -> Result<Released, Error> {
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
    fn release(self) -> impl Future<Output = Result<Released, Error>> + Send {
        Self::release(self)
    }
}
