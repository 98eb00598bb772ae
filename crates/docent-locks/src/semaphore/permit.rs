use docent_core::recipe::HoldSet;
use docent_core::{Error, Guard, Held};
use std::future::Future;
use std::ops::Deref;

/// One or several permits of a [`Semaphore`](crate::Semaphore). It is lost as soon as one of them is; the
/// others are kept until it is dropped.
///
/// It dereferences to [`Held`], which says whether all are still held. It has no [fence](Held::fence): others
/// may hold permits beside it.
///
/// # On drop
/// All permits are released in the background: the deletes are submitted at once, and tried until they are
/// done. It never blocks or panics, also outside a runtime. [`release`](Self::release) says when it is done.
#[derive(Debug)]
#[must_use = "the permits are released when the guard is dropped"]
pub struct Permit {
    hold: HoldSet,
}

impl Permit {
    pub(crate) fn new(hold: HoldSet) -> Self {
        Self { hold }
    }

    /// Number of permits it stands for.
    pub fn permits(&self) -> usize {
        self.hold.holds().len()
    }

    /// Gives up all permits and waits until their nodes are deleted.
    ///
    /// # Errors
    /// `Lost` when one was lost before the servers answered. `Timeout` when no server could be reached in
    /// time, `Closed` when the client was closed meanwhile: they are released in the background then, or with
    /// their session.
    ///
    /// # Cancel safety
    /// This method is cancel safe: the release goes on in the background.
    pub async fn release(self) -> Result<(), Error> {
        self.hold.release().await
    }
}

impl Deref for Permit {
    type Target = Held;

    fn deref(&self) -> &Held {
        &self.hold
    }
}

impl Guard for Permit {
    fn release(self) -> impl Future<Output = Result<(), Error>> + Send {
        Self::release(self)
    }
}
