use crate::acquire::again;
use crate::guard::guard_methods;
use crate::mutex_guard::release;
use docent_core::recipe::Hold;
use docent_core::{Error, Fence, Lost};
use std::sync::Arc;

/// Reads under an [`RwLock`](crate::RwLock). Several guards of one owner share a hold; it ends with the last
/// of them.
///
/// It is lost as a [`MutexGuard`](crate::MutexGuard) is: unless somebody interferes from outside, before a
/// writer can hold the lock.
///
/// # On drop
/// The last guard's drop releases in the background: the delete is submitted at once, and tried until it is
/// done. It never blocks or panics, also outside a runtime. [`release`](Self::release) says when it is done.
#[derive(Debug)]
#[must_use = "the lock is released when the guard is dropped"]
pub struct ReadGuard {
    hold: Arc<Hold>,
}

impl ReadGuard {
    pub(super) fn new(hold: Arc<Hold>) -> Self {
        Self { hold }
    }

    pub(crate) fn into_hold(self) -> Arc<Hold> {
        self.hold
    }

    /// The writer's fence, for a guard that is nested in a writer or was downgraded from one. Readers have
    /// none of their own.
    pub fn fence(&self) -> Option<Fence> {
        self.hold.exclusive_fence()
    }

    /// The path of its node.
    pub fn path(&self) -> String {
        self.hold.path()
    }

    guard_methods!("read lock", "RwLock::revoke");

    /// Another guard of the same hold, without I/O and for any owner.
    ///
    /// # Errors
    /// [`Lost`] when the read lock is lost.
    pub fn reenter(&self) -> Result<Self, Lost> {
        Ok(Self::new(again(Arc::clone(&self.hold))?))
    }

    /// Gives up this guard. The last guard of a hold waits until its node is deleted.
    ///
    /// # Errors
    /// `Lost` when it had been lost before. `Timeout` when no server could be reached in time, `Closed` when
    /// the client was closed meanwhile: it is released in the background then, or with its session.
    ///
    /// # Cancel safety
    /// This method is cancel safe: the release goes on in the background.
    pub async fn release(self) -> Result<(), Error> {
        release(self.hold).await
    }
}
