use docent_core::recipe::HoldSet;
use docent_core::{Error, Guard, Held, Released};
use std::future::Future;
use std::ops::Deref;

/// One or several permits of a [`Semaphore`](crate::Semaphore). The guard is lost as soon as one of its
/// permits is lost; the other permits are kept until the guard is dropped.
///
/// Dereferences to [`Held`], which reports whether all permits are still held. It has no
/// [fence](Held::fence), because other clients may hold permits at the same time.
///
/// # On drop
/// All permits are released in the background: the deletes are submitted immediately and retried until they
/// succeed. The drop never blocks or panics, even outside a runtime. Call [`release`](Self::release) to wait
/// until the nodes are deleted.
#[derive(Debug)]
#[must_use = "the permits are released when the guard is dropped"]
pub struct Permit {
    hold: HoldSet,
}

impl Permit {
    pub(crate) fn new(hold: HoldSet) -> Self {
        Self { hold }
    }

    /// Returns the number of permits of this guard.
    pub fn permits(&self) -> usize {
        self.hold.holds().len()
    }

    /// Releases all permits and waits until their nodes are deleted, at most for the operation timeout and
    /// until the end of the lease. [`Released::Pending`] is returned if that takes longer, as in an outage:
    /// the permits are then released in the background or with their session.
    ///
    /// # Errors
    /// `Lost` if a permit was lost before this call. `NoAuth` and other refusals of the servers. `Closed` if
    /// the client was closed: the permits are then released with their session.
    ///
    /// # Cancel safety
    /// This method is cancel safe: the release continues in the background.
    pub async fn release(self) -> Result<Released, Error> {
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
    fn release(self) -> impl Future<Output = Result<Released, Error>> + Send {
        Self::release(self)
    }
}
