use super::ReadGuard;
use crate::acquire::{reentered, release};
use crate::lock_hold::LockHold;
use crate::owner::Exchange;
use crate::{AcquireError, Owner};
use docent_core::recipe::{Hold, Line};
use docent_core::{Error, Fence, Guard, Held, Lost};
use futures_util::FutureExt;
use std::future::Future;
use std::ops::Deref;
use std::sync::Arc;

/// Writes under an [`RwLock`](crate::RwLock). Several guards of one owner share a hold; the lock is free when
/// the last of them is gone.
///
/// It dereferences to [`Held`], which says whether it is still held.
///
/// # On drop
/// The last guard's drop releases in the background: the delete is submitted at once, and tried until it is
/// done. It never blocks or panics, also outside a runtime. [`release`](Self::release) says when it is done.
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

    /// The fencing token: higher than the fence of every earlier writer of this path. The same for all guards
    /// of a hold.
    pub fn fence(&self) -> Fence {
        self.hold.fence()
    }

    /// The path of its node.
    pub fn path(&self) -> String {
        self.hold.path()
    }

    /// Another guard of the same hold, without I/O and for any owner.
    ///
    /// # Errors
    /// [`Lost`] when the write lock is lost.
    pub fn reenter(&self) -> Result<Self, Lost> {
        let hold = reentered(Arc::clone(&self.hold))?;
        Ok(Self::new(hold, self.owner.clone(), self.readers.clone()))
    }

    /// Becomes a reader in the writer's place: readers right behind it are let in, and no other writer comes
    /// between. The guard keeps the writer's fence, and [tokens](Held::token) taken before go on telling of
    /// its loss. Where the owner reads already, it shares that hold.
    ///
    /// To read first, as this owner, and then to release or drop this guard has the same effect.
    ///
    /// # Errors
    /// `InvalidInput` when the owner has other guards of the same hold: they would go on writing. `Lost`;
    /// `NoAuth`, `Timeout` and `Closed` when the reader's node cannot be created. With any of these errors
    /// this guard is given up.
    ///
    /// # Cancel safety
    /// This method is cancel safe, but the lock is released, unless the owner began to read meanwhile.
    pub async fn downgrade(self) -> Result<ReadGuard, Error> {
        let Self { hold, owner, readers } = self;
        let key = readers.key();
        let downgrade = |hold: Hold| async move { Ok(hold.downgrade(&readers).await?.into()) }.boxed();
        let stepping_down = owner.exchange(key, hold, downgrade).map_err(|hold| {
            let others = Arc::strong_count(&hold).saturating_sub(1);
            let detail =
                format!("{others} other guards of the hold must be released first: {:?}", hold.path());
            Error::invalid_input("downgrade", detail)
        })?;
        let stepping_down = match stepping_down {
            Exchange::Started(stepping_down) => stepping_down,
            Exchange::Beside(writing, reading) => {
                writing.give_way(&reading)?;
                return Ok(ReadGuard::new(reading));
            }
        };
        match stepping_down.await.and_then(LockHold::own) {
            Ok(hold) => Ok(ReadGuard::new(hold)),
            Err(AcquireError::Core(error)) => Err(error),
            Err(other) => Err(Error::invalid_input("downgrade", other.to_string())),
        }
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

impl Deref for WriteGuard {
    type Target = Held;

    fn deref(&self) -> &Held {
        &self.hold
    }
}

impl Guard for WriteGuard {
    fn release(self) -> impl Future<Output = Result<(), Error>> + Send {
        Self::release(self)
    }
}
