use crate::acquire::{reentered, release};
use docent_core::recipe::Hold;
use docent_core::{Error, Guard, Held, Lost};
use std::future::Future;
use std::ops::Deref;
use std::sync::Arc;

/// Reads under an [`RwLock`](crate::RwLock). Several guards of one owner share a hold; it ends with the last
/// of them.
///
/// It dereferences to [`Held`], which says whether it is still held. Its [`fence`](Held::fence) is that of
/// the writer, if its owner wrote when it began to read, or if it was downgraded from a writer. Other readers
/// have none.
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

    /// The path of its node.
    pub fn path(&self) -> String {
        self.hold.path()
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

impl Deref for ReadGuard {
    type Target = Held;

    fn deref(&self) -> &Held {
        &self.hold
    }
}

impl Guard for ReadGuard {
    fn release(self) -> impl Future<Output = Result<(), Error>> + Send {
        Self::release(self)
    }
}
