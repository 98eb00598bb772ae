use docent_core::recipe::{AsHold, HoldRef, HoldSet};
use docent_core::{Error, Fence, Lost, LostReason, Transaction};
use std::future::Future;
use tokio_util::sync::CancellationToken;

/// Holds all locks of a [`MultiLock`](crate::MultiLock). It is lost as soon as one of them is; the others are
/// held until it is dropped.
///
/// # On drop
/// All locks are released in the background, but for those that their owner holds besides: the deletes are
/// submitted at once, and tried until they are done. It never blocks or panics, also outside a runtime.
/// [`release`](Self::release) says when it is done.
#[derive(Debug)]
#[must_use = "the locks are released when the guard is dropped"]
pub struct MultiGuard {
    hold: HoldSet,
    fences: Vec<(String, Fence)>,
}

impl MultiGuard {
    pub(crate) fn new(hold: HoldSet, fences: Vec<(String, Fence)>) -> Self {
        Self { hold, fences }
    }

    /// The fencing token of the lock at `path`; `None` for paths that are read or not among them.
    pub fn fence(&self, path: &str) -> Option<Fence> {
        self.fences().find_map(|(own, fence)| (own == path).then_some(fence))
    }

    /// The fencing tokens, each with its path. Locks that are read have none.
    pub fn fences(&self) -> impl Iterator<Item = (&str, Fence)> {
        self.fences.iter().map(|(path, fence)| (path.as_str(), *fence))
    }

    /// True when the servers were found to be restored from an older copy since the client was built: then
    /// fences may be lower than the fences of earlier holders. See
    /// [`RollbackPolicy`](docent_core::RollbackPolicy).
    pub fn fence_may_have_regressed(&self) -> bool {
        self.hold.holds().iter().any(|hold| hold.fence_may_have_regressed())
    }

    /// The paths of the locks' nodes, in the order in which they were acquired.
    pub fn paths(&self) -> Vec<String> {
        self.hold.holds().iter().map(|hold| hold.path()).collect()
    }

    /// True while it is certain that the set of locks is held, without I/O. See
    /// [`Guard::is_held`](docent_core::Guard::is_held).
    pub fn is_held(&self) -> bool {
        self.hold.is_held()
    }

    /// Resolves with the reason when the set of locks is lost. See [`Guard::lost`](docent_core::Guard::lost).
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn lost(&self) -> LostReason {
        self.hold.lost().await
    }

    /// Cancelled when the set of locks is lost; not when it is released. See
    /// [`Guard::token`](docent_core::Guard::token).
    pub fn token(&self) -> CancellationToken {
        self.hold.token()
    }

    /// Resolves when somebody asked for the set of locks with [`Mutex::revoke`](crate::Mutex::revoke),
    /// or the client is [shut down](docent_core::Client::shutdown). It is held on; release it when it suits.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn revoked(&self) {
        self.hold.revoked().await;
    }

    /// Runs `future` for as long as the set of locks is held. See [`Guard::run`](docent_core::Guard::run).
    ///
    /// # Errors
    /// [`Lost`] as soon as the set of locks is lost; `future` is dropped then.
    ///
    /// # Cancel safety
    /// As cancel safe as `future`.
    pub async fn run<F: Future>(&self, future: F) -> Result<F::Output, Lost> {
        self.hold.run(future).await
    }

    /// Asks the servers whether the set of locks is held: a linearizable check. See
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

    /// Prepares writes to ZooKeeper that are applied, all together, only while the set of locks is held.
    pub fn transaction(&self) -> Transaction {
        self.hold.transaction()
    }

    /// Releases all locks and waits until their nodes are deleted.
    ///
    /// # Errors
    /// `Lost` when one was lost before the servers answered. `Timeout` when no server could be reached in
    /// time, `Closed` when the client was closed meanwhile: they are released in the background then, or with
    /// their session. A lock that fails keeps no other from being released.
    ///
    /// # Cancel safety
    /// This method is cancel safe: the release goes on in the background.
    pub async fn release(self) -> Result<(), Error> {
        self.hold.release().await
    }
}

impl AsHold for MultiGuard {
    fn as_hold(&self) -> HoldRef<'_> {
        HoldRef::Set(&self.hold)
    }

    fn into_released(self) -> impl Future<Output = Result<(), Error>> + Send {
        Self::release(self)
    }
}
