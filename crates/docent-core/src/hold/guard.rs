use super::Held;
use crate::error::Error;
use crate::guard::Released;
use std::future::Future;
use std::ops::Deref;

/// A guard of a lock, permit, leadership or delivery.
///
/// This is the bound of functions that release any guard. Functions that only use a guard take a
/// [`&Held`](Held). Implement `Guard` for the guard type of your own recipe.
///
/// ```
/// use docent_core::{Error, Guard};
///
/// async fn finish(guard: impl Guard) -> Result<(), Error> {
///     if guard.run(async { /* the work */ }).await.is_ok() {
///         guard.release().await?;
///     }
///     Ok(())
/// }
/// ```
pub trait Guard: Deref<Target = Held> + Send + Sync {
    /// Releases the guard and waits until its node is deleted, at most for the operation timeout and until
    /// the end of the lease. A leader resigns; a delivery returns to its queue. Returns
    /// [`Released::Pending`] if the deletion takes longer, as in an outage: the guard is released, and the
    /// client keeps deleting its node in the background.
    ///
    /// # Errors
    /// `Lost` if the guard was lost before this call. `NoAuth` and other refusals of the servers. `Closed` if
    /// the client was closed: the node is then deleted with its session.
    ///
    /// # Cancel safety
    /// This method is cancel safe: the release continues in the background.
    fn release(self) -> impl Future<Output = Result<Released, Error>> + Send
    where
        Self: Sized;
}
