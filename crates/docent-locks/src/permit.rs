use crate::guard::guard_methods;
use docent_core::Error;
use docent_core::recipe::HoldSet;

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

    guard_methods!("permit", "Semaphore::revoke");

    /// Gives up all permits and waits until their nodes are deleted.
    ///
    /// # Errors
    /// `Lost` when one had been lost before. `Timeout` when no server could be reached in time, `Closed` when
    /// the client was closed meanwhile: they are released in the background then, or with their session.
    ///
    /// # Cancel safety
    /// This method is cancel safe: the release goes on in the background.
    pub async fn release(self) -> Result<(), Error> {
        self.hold.release().await
    }
}
