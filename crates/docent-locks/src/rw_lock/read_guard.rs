use crate::acquire::{reentered, release};
use docent_core::recipe::Hold;
use docent_core::{Error, Guard, Held, Lost, Released};
use std::future::Future;
use std::ops::Deref;
use std::sync::Arc;

/// Guard of an [`RwLock`](crate::RwLock) for reading. Several guards of one owner share a hold; the hold ends
/// with the last of them.
///
/// Dereferences to [`Held`], which reports whether the lock is still held. If the owner wrote when it began
/// to read, or if the guard was downgraded from a writer, its [`fence`](Held::fence) is that of the writer.
/// Other readers have no fence.
///
/// # On drop
/// Dropping the last guard releases the lock in the background: the delete of its node is submitted
/// immediately and retried until it succeeds. The drop never blocks or panics, even outside a runtime. Call
/// [`release`](Self::release) to wait until the node is deleted.
#[derive(Debug)]
#[must_use = "the lock is released when the guard is dropped"]
pub struct ReadGuard {
    hold: Arc<Hold>,
}

impl ReadGuard {
    pub(super) fn new(hold: Arc<Hold>) -> Self {
        Self { hold }
    }

    /// Returns the path of the reader's node.
    pub fn path(&self) -> String {
        self.hold.path()
    }

    /// Returns another guard of the same hold, without I/O and for any owner.
    ///
    /// # Errors
    /// [`Lost`] if the read lock is lost.
    pub fn reenter(&self) -> Result<Self, Lost> {
        Ok(Self::new(reentered(Arc::clone(&self.hold))?))
    }

    /// Releases this guard. The last guard of a hold waits until its node is deleted, at most for the
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

impl Deref for ReadGuard {
    type Target = Held;

    fn deref(&self) -> &Held {
        &self.hold
    }
}

impl Guard for ReadGuard {
    fn release(self) -> impl Future<Output = Result<Released, Error>> + Send {
        Self::release(self)
    }
}
