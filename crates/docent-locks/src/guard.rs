use docent_core::recipe::Hold;
use docent_core::{Error, Fence, Lost, LostReason, Transaction};
use std::future::Future;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Holds a [`Mutex`](crate::Mutex). Several guards of one owner share a hold; the lock is free when the last of them is gone.
///
/// The guard knows by the clock until when it is certain to hold the lock. When that time passes without a server having
/// acknowledged a write, or its node or session is gone, the guard is *lost*: [`is_held`](Self::is_held) is false from then
/// on, [`lost`](Self::lost) resolves and [`token`](Self::token) is cancelled. Unless somebody ends the session or deletes the
/// node from outside, that is before anybody else can acquire the lock.
///
/// # On drop
/// The last guard's drop releases the lock in the background: the delete is submitted at once, and tried until it is done.
/// It never blocks or panics, also outside a runtime. [`release`](Self::release) says when it is done.
#[derive(Debug)]
#[must_use = "the lock is released when the guard is dropped"]
pub struct MutexGuard {
    hold: Arc<Hold>,
}

impl MutexGuard {
    pub(crate) fn new(hold: Arc<Hold>) -> Self {
        Self { hold }
    }

    /// Another guard of a hold, unless that is lost.
    pub(crate) fn again(hold: Arc<Hold>) -> Result<Self, Lost> {
        #[cfg(docent_planted)]
        if docent_core::planted::is(docent_core::planted::Planted::ReentryNotBoundToEpoch) {
            return Ok(Self::new(hold));
        }
        hold.check()?;
        Ok(Self::new(hold))
    }

    /// The fencing token: higher than that of every earlier holder of this path. The same for all guards of a hold.
    pub fn fence(&self) -> Fence {
        self.hold.fence()
    }

    /// True when the servers were found to be restored from an older copy since the client was built: then the fence may be
    /// lower than those of earlier holders. See [`RollbackPolicy`](docent_core::RollbackPolicy).
    pub fn fence_may_have_regressed(&self) -> bool {
        self.hold.fence_may_have_regressed()
    }

    /// The path of the lock's node.
    pub fn path(&self) -> String {
        self.hold.path()
    }

    /// True while it is certain that nobody else holds the lock. No I/O: compares clock and session, and is right even after
    /// the process was frozen. Once false it stays false.
    pub fn is_held(&self) -> bool {
        self.hold.is_held()
    }

    /// Resolves with the reason when the lock is lost; never, when it is released.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn lost(&self) -> LostReason {
        self.hold.lost().await
    }

    /// Cancelled when the lock is lost; not when it is released. For work that stops by a token.
    pub fn token(&self) -> CancellationToken {
        self.hold.token()
    }

    /// Resolves when somebody asked for the lock with [`Mutex::revoke`](crate::Mutex::revoke). The lock is held on; release it
    /// when it suits.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn revoked(&self) {
        self.hold.revoked().await;
    }

    /// Runs `future` for as long as the lock is held. The clock is looked at before every poll, so that work which was paused
    /// does not go on after the lock was lost. A future that blocks its thread cannot be stopped.
    ///
    /// # Errors
    /// [`Lost`] as soon as the lock is lost; `future` is dropped then.
    ///
    /// # Cancel safety
    /// As cancel safe as `future`.
    pub async fn run<F: Future>(&self, future: F) -> Result<F::Output, Lost> {
        self.hold.run(future).await
    }

    /// Asks the servers whether the lock is held: a linearizable check. It was held at one moment between call and return;
    /// [`is_held`](Self::is_held) says whether it may still be.
    ///
    /// # Errors
    /// `Lost` when it is not held any more; `Timeout`, `NoAuth`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn verify(&self) -> Result<(), Error> {
        self.hold.verify().await
    }

    /// Prepares writes to ZooKeeper that are applied, all together, only while the lock is held.
    pub fn transaction(&self) -> Transaction {
        self.hold.transaction()
    }

    /// Another guard of the same hold, without I/O and whoever the owner is.
    ///
    /// # Errors
    /// [`Lost`] when the lock is lost.
    pub fn reenter(&self) -> Result<Self, Lost> {
        Self::again(Arc::clone(&self.hold))
    }

    /// Gives up this guard. The last guard of a hold waits until the lock's node is deleted.
    ///
    /// # Errors
    /// `Lost` when the lock had been lost before. `Timeout` when no server could be reached in time, `Closed` when the client
    /// was closed meanwhile: the lock is released in the background then, or with its session.
    ///
    /// # Cancel safety
    /// This method is cancel safe: the release goes on in the background.
    pub async fn release(self) -> Result<(), Error> {
        let still_held = self.hold.check_for("release");
        match Arc::into_inner(self.hold) {
            Some(hold) => hold.release().await,
            None => still_held,
        }
    }
}
