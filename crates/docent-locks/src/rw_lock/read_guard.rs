use crate::acquire::{reentered, release};
use docent_core::recipe::{AsHold, Hold, HoldRef};
use docent_core::{Error, Fence, Lost, LostReason, Transaction};
use std::future::Future;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

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

    /// The writer's fence, for a guard of an owner that wrote when it began to read, or that was downgraded
    /// from a writer's. Readers have none of their own.
    pub fn fence(&self) -> Option<Fence> {
        self.hold.exclusive_fence()
    }

    /// The path of its node.
    pub fn path(&self) -> String {
        self.hold.path()
    }

    /// True while it is certain that the read lock is held, without I/O. See
    /// [`Guard::is_held`](docent_core::Guard::is_held).
    pub fn is_held(&self) -> bool {
        self.hold.is_held()
    }

    /// Resolves with the reason when the read lock is lost. See [`Guard::lost`](docent_core::Guard::lost).
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn lost(&self) -> LostReason {
        self.hold.lost().await
    }

    /// Cancelled when the read lock is lost; not when it is released. See
    /// [`Guard::token`](docent_core::Guard::token).
    pub fn token(&self) -> CancellationToken {
        self.hold.token()
    }

    /// Resolves when somebody asked for the read lock with [`RwLock::revoke`](crate::RwLock::revoke),
    /// or the client is [shut down](docent_core::Client::shutdown). It is held on; release it when it suits.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn revoked(&self) {
        self.hold.revoked().await;
    }

    /// Runs `future` for as long as the read lock is held. See [`Guard::run`](docent_core::Guard::run).
    ///
    /// # Errors
    /// [`Lost`] as soon as the read lock is lost; `future` is dropped then.
    ///
    /// # Cancel safety
    /// As cancel safe as `future`.
    pub async fn run<F: Future>(&self, future: F) -> Result<F::Output, Lost> {
        self.hold.run(future).await
    }

    /// Asks the servers whether the read lock is held: a linearizable check. See
    /// [`Guard::verify`](docent_core::Guard::verify).
    ///
    /// # Errors
    /// `Lost` when it is not held any more; `Timeout`, `NoAuth`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn verify(&self) -> Result<(), Error> {
        self.hold.verify().await
    }

    /// Prepares writes to ZooKeeper that are applied, all together, only while the read lock is held.
    pub fn transaction(&self) -> Transaction {
        self.hold.transaction()
    }

    /// Another guard of the same hold, without I/O and for any owner.
    ///
    /// # Errors
    /// [`Lost`] when the read lock is lost.
    pub fn reenter(&self) -> Result<Self, Lost> {
        Ok(Self::new(reentered(Arc::clone(&self.hold))?))
    }

    /// Gives up this guard. The last guard of a hold waits until its node is deleted.
    ///
    /// # Errors
    /// `Lost` when it was lost before the servers answered. `Timeout` when no server could be reached in
    /// time, `Closed` when the client was closed meanwhile: it is released in the background then, or with
    /// its session.
    ///
    /// # Cancel safety
    /// This method is cancel safe: the release goes on in the background.
    pub async fn release(self) -> Result<(), Error> {
        release(self.hold).await
    }
}

impl AsHold for ReadGuard {
    fn as_hold(&self) -> HoldRef<'_> {
        HoldRef::One(&self.hold)
    }

    fn into_released(self) -> impl Future<Output = Result<(), Error>> + Send {
        Self::release(self)
    }
}
