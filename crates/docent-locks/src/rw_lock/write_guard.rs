use super::ReadGuard;
use crate::acquire::{reentered, release};
use crate::owner::{Exchange, LockHold};
use crate::{AcquireError, Owner};
use docent_core::recipe::{Hold, Line};
use docent_core::{Error, Fence, Guard, Held, Lost, Released};
use futures_util::FutureExt;
use std::future::Future;
use std::ops::Deref;
use std::sync::Arc;

/// Guard of an [`RwLock`](crate::RwLock) for writing. Several guards of one owner share a hold; the lock is
/// released with the last of them.
///
/// Dereferences to [`Held`], which reports whether the lock is still held.
///
/// # On drop
/// Dropping the last guard releases the lock in the background: the delete of its node is submitted
/// immediately and retried until it succeeds. The drop never blocks or panics, even outside a runtime. Call
/// [`release`](Self::release) to wait until the node is deleted.
#[derive(Debug)]
#[must_use = "the lock is released when the guard is dropped"]
pub struct WriteGuard {
    hold: Arc<Hold>,
    owner: Owner,
    readers: Line,
}

impl WriteGuard {
    pub(super) fn new(hold: Arc<Hold>, owner: Owner, readers: Line) -> Self {
        Self { hold, owner, readers }
    }

    /// Returns the fencing token, which is higher than the fence of every earlier writer of this path. All
    /// guards of a hold have the same fence.
    pub fn fence(&self) -> Fence {
        self.hold.fence()
    }

    /// Returns the path of the writer's node.
    pub fn path(&self) -> String {
        self.hold.path()
    }

    /// Returns another guard of the same hold, without I/O and for any owner.
    ///
    /// # Errors
    /// [`Lost`] if the write lock is lost.
    pub fn reenter(&self) -> Result<Self, Lost> {
        let hold = reentered(Arc::clone(&self.hold))?;
        Ok(Self::new(hold, self.owner.clone(), self.readers.clone()))
    }

    /// Turns the writer into a reader in the same place of the line. Readers right behind it are let in, and
    /// no other writer can take the lock in between. The returned guard keeps the writer's fence, and
    /// [tokens](Held::token) that were taken before still signal the loss. If the owner already reads, the
    /// returned guard shares that hold.
    ///
    /// Acquiring a read lock as this owner and then releasing or dropping this guard has the same effect.
    ///
    /// # Errors
    /// `InvalidInput` if the owner has other guards of the same hold, because they would continue to write.
    /// `Lost`; `NoAuth`, `Timeout` and `Closed` if the reader's node cannot be created. After any of these
    /// errors this guard is released.
    ///
    /// # Cancel safety
    /// This method is cancel safe, but cancelling it releases the lock, unless another task of the owner has
    /// begun to read meanwhile.
    pub async fn downgrade(self) -> Result<ReadGuard, Error> {
        let Self { hold, owner, readers } = self;
        let key = readers.key();
        let downgrade = |hold: Hold| async move { Ok(hold.downgrade(&readers).await?.into()) }.boxed();
        let stepping_down = owner.exchange(key, hold, downgrade).map_err(|hold| {
            let other_guards = Arc::strong_count(&hold).saturating_sub(1);
            let detail =
                format!("{other_guards} other guards of the hold must be released first: {:?}", hold.path());
            Error::invalid_input("downgrade", detail)
        })?;
        let stepping_down = match stepping_down {
            Exchange::Started(stepping_down) => stepping_down,
            Exchange::AlreadyHeld(writing, reading) => {
                writing.hand_over_to(&reading)?;
                return Ok(ReadGuard::new(reading));
            }
        };
        match stepping_down.await.and_then(LockHold::own) {
            Ok(hold) => Ok(ReadGuard::new(hold)),
            Err(AcquireError::Core(error)) => Err(error),
            Err(other) => Err(Error::invalid_input("downgrade", other.to_string())),
        }
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

impl Deref for WriteGuard {
    type Target = Held;

    fn deref(&self) -> &Held {
        &self.hold
    }
}

impl Guard for WriteGuard {
    fn release(self) -> impl Future<Output = Result<Released, Error>> + Send {
        Self::release(self)
    }
}
