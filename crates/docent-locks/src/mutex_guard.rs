use crate::acquire::again;
use crate::guard::guard_methods;
use docent_core::recipe::Hold;
use docent_core::{Error, Fence, Lost};
use std::sync::Arc;

/// Holds a [`Mutex`](crate::Mutex). Several guards of one owner share a hold; the lock is free when the last
/// of them is gone.
///
/// The guard knows by the clock until when it is certain to hold the lock. When that time passes without a
/// server having acknowledged a write, or its node or session is gone, the guard is *lost*:
/// [`is_held`](Self::is_held) is false from then on, [`lost`](Self::lost) resolves and [`token`](Self::token)
/// is cancelled. Unless somebody ends the session or deletes the node from outside, that is before anybody
/// else can acquire the lock.
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
    pub(crate) fn new(hold: Arc<Hold>) -> Self {
        Self { hold }
    }

    pub(crate) fn into_hold(self) -> Arc<Hold> {
        self.hold
    }

    /// The fencing token: higher than the fence of every earlier holder of this path. The same for all guards
    /// of a hold.
    pub fn fence(&self) -> Fence {
        self.hold.fence()
    }

    /// True when the servers were found to be restored from an older copy since the client was built: then
    /// the fence may be lower than the fences of earlier holders. See
    /// [`RollbackPolicy`](docent_core::RollbackPolicy).
    pub fn fence_may_have_regressed(&self) -> bool {
        self.hold.fence_may_have_regressed()
    }

    /// The path of the lock's node.
    pub fn path(&self) -> String {
        self.hold.path()
    }

    guard_methods!("lock", "Mutex::revoke");

    /// Another guard of the same hold, without I/O and for any owner.
    ///
    /// # Errors
    /// [`Lost`] when the lock is lost.
    pub fn reenter(&self) -> Result<Self, Lost> {
        Ok(Self::new(again(Arc::clone(&self.hold))?))
    }

    /// Gives up this guard. The last guard of a hold waits until the lock's node is deleted.
    ///
    /// # Errors
    /// `Lost` when the lock had been lost before. `Timeout` when no server could be reached in time, `Closed`
    /// when the client was closed meanwhile: the lock is released in the background then, or with its
    /// session.
    ///
    /// # Cancel safety
    /// This method is cancel safe: the release goes on in the background.
    pub async fn release(self) -> Result<(), Error> {
        release(self.hold).await
    }
}

/// Gives up a share in a hold; the last one waits until its node is deleted.
pub(crate) async fn release(hold: Arc<Hold>) -> Result<(), Error> {
    let still_held = hold.check_for("release");
    match Arc::into_inner(hold) {
        Some(hold) => hold.release().await,
        None => still_held,
    }
}
