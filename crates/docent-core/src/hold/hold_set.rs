use super::{Guard, Held, Hold};
use crate::error::Error;
use crate::guard::Released;
use futures_util::future::join_all;
use std::future::Future;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio_util::sync::CancellationToken;

/// Several holds of one client combined into one. The set is held while all its holds are held, and lost as
/// soon as one of them is lost.
///
/// # On drop
/// All holds are given up, except those that are shared elsewhere.
///
/// # Examples
/// ```no_run
/// # use docent_core::recipe::{HoldSet, Line};
/// # use docent_core::Error;
/// # use std::sync::Arc;
/// /// Holds two lines at the same time. Every client acquires them in this order.
/// async fn both(first: &Line, second: &Line) -> Result<Option<HoldSet>, Error> {
///     let first = Arc::new(first.acquire(None).await?);
///     let second = Arc::new(second.acquire(None).await?);
///     HoldSet::together(vec![first, second]).await
/// }
/// ```
#[derive(Debug)]
#[must_use = "dropping the set gives its holds up"]
pub struct HoldSet {
    holds: Vec<Arc<Hold>>,
    held: Held,
    /// Number that identifies the token of the set in its holds.
    number: u64,
}

impl HoldSet {
    /// Combines `holds` into one.
    ///
    /// # Errors
    /// `InvalidInput` if `holds` is empty.
    pub fn new(holds: Vec<Arc<Hold>>) -> Result<Self, Error> {
        static NEXT_NUMBER: AtomicU64 = AtomicU64::new(1);
        if holds.is_empty() {
            return Err(Error::invalid_input("acquire", "a set of 0 holds must contain at least 1"));
        }
        let (token, number) = (CancellationToken::new(), NEXT_NUMBER.fetch_add(1, Ordering::Relaxed));
        holds.iter().for_each(|hold| hold.state().join(number, &token));
        let parts = holds.iter().map(|hold| hold.part().clone()).collect();
        Ok(Self { held: Held::all(parts, token), holds, number })
    }

    /// Combines `holds` into one, after making certain that all were held at the same moment. The node of the
    /// first may have been deleted before the last was acquired, which the client may not know yet. Returns
    /// `None` if a hold was lost.
    ///
    /// # Errors
    /// `InvalidInput` if `holds` is empty; `Timeout`, `NoAuth`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe, but cancelling it gives up the holds.
    pub async fn together(holds: Vec<Arc<Hold>>) -> Result<Option<Self>, Error> {
        let set = Self::new(holds)?;
        // `verify` checks each node. All nodes were created before the first check, so all existed when the
        // first check was applied.
        let proven = if set.holds.len() > 1 && !planted!(SetUnproven) { set.verify().await } else { Ok(()) };
        match proven {
            Err(error) if !error.is_lost() => Err(error),
            _ => Ok((set.is_held() || planted!(SetUnproven)).then_some(set)),
        }
    }

    /// The holds, in the given order.
    pub fn holds(&self) -> &[Arc<Hold>] {
        &self.holds
    }

    /// Gives up all holds and waits until their nodes are deleted, as [`Hold::release`] does. Returns
    /// [`Released::Pending`] if one of the deletions is pending. Holds that are shared elsewhere remain held.
    ///
    /// # Errors
    /// The error of the first hold that failed, as from [`Hold::release`]. All holds are given up in any
    /// case.
    ///
    /// # Cancel safety
    /// This method is cancel safe: the release continues in the background.
    pub async fn release(mut self) -> Result<Released, Error> {
        let was_held = self.check_for("release");
        self.separate();
        let holds = std::mem::take(&mut self.holds);
        // All deletes are submitted before the first one is awaited.
        let releases = holds.into_iter().filter_map(Arc::into_inner).map(Hold::release);
        was_held.and(join_all(releases).await.into_iter().collect())
    }

    fn separate(&self) {
        self.holds.iter().for_each(|hold| hold.state().leave(self.number));
    }
}

impl Deref for HoldSet {
    type Target = Held;

    fn deref(&self) -> &Held {
        &self.held
    }
}

impl Guard for HoldSet {
    fn release(self) -> impl Future<Output = Result<Released, Error>> + Send {
        Self::release(self)
    }
}

impl Drop for HoldSet {
    fn drop(&mut self) {
        self.separate();
    }
}
