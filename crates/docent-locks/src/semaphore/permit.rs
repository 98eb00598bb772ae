use docent_core::recipe::{AsHold, HoldRef, HoldSet};
use docent_core::{Error, Fence, Lost, LostReason, Transaction};
use std::future::Future;
use tokio_util::sync::CancellationToken;

/// One or several permits of a [`Semaphore`](crate::Semaphore). It is lost as soon as one of them is; the
/// others are kept until it is dropped.
///
/// It is lost as a [`MutexGuard`](crate::MutexGuard) is: unless somebody interferes from outside, before
/// anybody else can get the permit it stands for.
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

    /// The paths of their nodes.
    pub fn paths(&self) -> Vec<String> {
        self.hold.holds().iter().map(|hold| hold.path()).collect()
    }

    /// True while it is certain that the permit is held, without I/O. See
    /// [`Guard::is_held`](docent_core::Guard::is_held).
    pub fn is_held(&self) -> bool {
        self.hold.is_held()
    }

    /// Resolves with the reason when the permit is lost. See [`Guard::lost`](docent_core::Guard::lost).
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn lost(&self) -> LostReason {
        self.hold.lost().await
    }

    /// Cancelled when the permit is lost; not when it is released. See
    /// [`Guard::token`](docent_core::Guard::token).
    pub fn token(&self) -> CancellationToken {
        self.hold.token()
    }

    /// Resolves when somebody asked for the permit with [`Semaphore::revoke`](crate::Semaphore::revoke),
    /// or the client is [shut down](docent_core::Client::shutdown). It is held on; release it when it suits.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn revoked(&self) {
        self.hold.revoked().await;
    }

    /// Runs `future` for as long as the permit is held. See [`Guard::run`](docent_core::Guard::run).
    ///
    /// # Errors
    /// [`Lost`] as soon as the permit is lost; `future` is dropped then.
    ///
    /// # Cancel safety
    /// As cancel safe as `future`.
    pub async fn run<F: Future>(&self, future: F) -> Result<F::Output, Lost> {
        self.hold.run(future).await
    }

    /// Asks the servers whether the permit is held: a linearizable check. See
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

    /// Prepares writes to ZooKeeper that are applied, all together, only while the permit is held.
    pub fn transaction(&self) -> Transaction {
        self.hold.transaction()
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

impl AsHold for Permit {
    fn as_hold(&self) -> HoldRef<'_> {
        HoldRef::Set(&self.hold)
    }

    /// Others may have permits beside it.
    fn hold_fence(&self) -> Option<Fence> {
        None
    }

    fn into_released(self) -> impl Future<Output = Result<(), Error>> + Send {
        Self::release(self)
    }
}
