use docent_core::recipe::HoldSet;
use docent_core::{Error, Fence, Guard, Held};
use std::future::Future;
use std::ops::Deref;

/// Holds all locks of a [`MultiLock`](crate::MultiLock). It is lost as soon as one of them is; the others are
/// held until it is dropped. It dereferences to [`Held`], which says whether all are still held.
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

impl Deref for MultiGuard {
    type Target = Held;

    fn deref(&self) -> &Held {
        &self.hold
    }
}

impl Guard for MultiGuard {
    fn release(self) -> impl Future<Output = Result<(), Error>> + Send {
        Self::release(self)
    }
}
