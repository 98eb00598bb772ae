use super::FenceKind;
use crate::AcquireError;
use crate::acquire::{reentered, release};
use docent_core::recipe::{AsHold, Hold, HoldRef};
use docent_core::{Error, Fence, Lost, LostReason, Transaction};
use std::future::Future;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Holds a [`Mutex`](crate::Mutex). Several guards of one owner share a hold; the lock is free when the last
/// of them is gone.
///
/// The guard knows by the clock until when it is certain to hold the lock. When that time passes without a
/// server having acknowledged a write, or its node or session is gone, the guard is *lost*:
/// [`is_held`](Self::is_held) is false from then on, [`lost`](Self::lost) resolves and [`token`](Self::token)
/// is cancelled. Unless somebody ends the session or deletes the node from outside, that is before anybody
/// else can acquire the lock.
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

    /// True when the servers were found to be restored from an older copy since the client was built: then
    /// the fence may be lower than the fences of earlier holders. See
    /// [`RollbackPolicy`](docent_core::RollbackPolicy).
    pub fn fence_may_have_regressed(&self) -> bool {
        self.hold.fence_may_have_regressed()
    }

    /// The path of the lock's node.
    ///
    /// Where tasks [share tickets](crate::MutexBuilder::share_in_process) the node is there for all turns
    /// with a ticket: that it exists, as a check in a transaction of your own finds out, does not say that
    /// this guard still has the lock. Only [`transaction`](Self::transaction) is bound to the turn.
    pub fn path(&self) -> String {
        self.hold.path()
    }

    /// True while it is certain that the lock is held, without I/O. See
    /// [`Guard::is_held`](docent_core::Guard::is_held).
    pub fn is_held(&self) -> bool {
        self.hold.is_held()
    }

    /// Resolves with the reason when the lock is lost. See [`Guard::lost`](docent_core::Guard::lost).
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn lost(&self) -> LostReason {
        self.hold.lost().await
    }

    /// Cancelled when the lock is lost; not when it is released. See
    /// [`Guard::token`](docent_core::Guard::token).
    pub fn token(&self) -> CancellationToken {
        self.hold.token()
    }

    /// Resolves when somebody asked for the lock with [`Mutex::revoke`](crate::Mutex::revoke),
    /// or the client is [shut down](docent_core::Client::shutdown). It is held on; release it when it suits.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn revoked(&self) {
        self.hold.revoked().await;
    }

    /// Runs `future` for as long as the lock is held. See [`Guard::run`](docent_core::Guard::run).
    ///
    /// # Errors
    /// [`Lost`] as soon as the lock is lost; `future` is dropped then.
    ///
    /// # Cancel safety
    /// As cancel safe as `future`.
    pub async fn run<W: Future>(&self, future: W) -> Result<W::Output, Lost> {
        self.hold.run(future).await
    }

    /// Asks the servers whether the lock is held: a linearizable check. See
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

    /// Prepares writes to ZooKeeper that are applied, all together, only while the lock is held: with a
    /// shared ticket only in this guard's turn.
    pub fn transaction(&self) -> Transaction {
        self.hold.transaction()
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

impl<F: FenceKind> AsHold for MutexGuard<F> {
    fn as_hold(&self) -> HoldRef<'_> {
        HoldRef::One(&self.hold)
    }

    fn into_released(self) -> impl Future<Output = Result<(), Error>> + Send {
        Self::release(self)
    }
}
