use docent_core::recipe::HoldSet;
use docent_core::{Error, Fence, Guard, Held, Released};
use std::future::Future;
use std::ops::Deref;

/// Guard of all locks of a [`MultiLock`](crate::MultiLock). It is lost as soon as one of the locks is lost;
/// the other locks are held until the guard is dropped. Dereferences to [`Held`], which reports whether all
/// locks are still held.
///
/// # On drop
/// All locks are released in the background, except holds that their owner shares with other guards. The
/// deletes are submitted immediately and retried until they succeed. The drop never blocks or panics, even
/// outside a runtime. Call [`release`](Self::release) to wait until the nodes are deleted.
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

    /// Returns the fencing token of the lock at `path`, or `None` if that lock is a read lock or not part of
    /// the set.
    pub fn fence(&self, path: &str) -> Option<Fence> {
        self.fences().find_map(|(own, fence)| (own == path).then_some(fence))
    }

    /// Returns the fencing tokens, each with its path. Read locks have no fencing token.
    pub fn fences(&self) -> impl Iterator<Item = (&str, Fence)> {
        self.fences.iter().map(|(path, fence)| (path.as_str(), *fence))
    }

    /// Releases all locks and waits until their nodes are deleted, at most for the operation timeout and
    /// until the end of the lease. [`Released::Pending`] is returned if that takes longer, as in an outage:
    /// the locks are then released in the background or with their session.
    ///
    /// # Errors
    /// `Lost` if a lock was lost before this call. `NoAuth` and other refusals of the servers. `Closed` if
    /// the client was closed: the locks are then released with their session. An error of one lock does not
    /// prevent the release of the others.
    ///
    /// # Cancel safety
    /// This method is cancel safe: the release continues in the background.
    pub async fn release(self) -> Result<Released, Error> {
        self.hold.release().await
    }
}

impl Deref for MultiGuard {
    type Target = Held;

    fn deref(&self) -> &Held {
        &self.hold
    }
}

impl Guard for MultiGuard {
    fn release(self) -> impl Future<Output = Result<Released, Error>> + Send {
        Self::release(self)
    }
}
