use super::{CleanupContext, Marker};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Most markers of one session, and so most exact writes under way at the same time. Closing a session
/// deletes all of its ephemeral nodes in one transaction, which has to stay far below what the servers can
/// read again.
const MOST: usize = 64;

/// The markers of a session.
#[derive(Debug)]
pub(crate) struct Markers {
    /// Permits, one for each marker that is in use or being deleted.
    places: Arc<Semaphore>,
    free: Mutex<Free>,
}

#[derive(Debug, Default)]
struct Free {
    markers: Vec<FreeMarker>,
    /// Fewest free markers since the last trim: so many were not needed.
    unneeded: usize,
    /// Set while a trim is due.
    trimming: bool,
}

/// Marker that no write is using.
#[derive(Debug)]
pub(super) struct FreeMarker {
    /// Full path.
    pub(super) path: String,
    /// Version of its data.
    pub(super) version: i32,
}

impl Default for Markers {
    fn default() -> Self {
        Self { places: Arc::new(Semaphore::new(MOST)), free: Mutex::default() }
    }
}

impl Markers {
    fn lock(&self) -> MutexGuard<'_, Free> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a place for a marker, until fewer than the most are in use.
    pub(super) async fn place(&self) -> OwnedSemaphorePermit {
        let places = Arc::clone(&self.places);
        places.acquire_owned().await.expect("the semaphore is never closed")
    }

    /// Takes a free marker; the caller has a place.
    pub(super) fn pop(&self) -> Option<FreeMarker> {
        let mut free = self.lock();
        let marker = free.markers.pop();
        free.unneeded = free.unneeded.min(free.markers.len());
        marker
    }

    /// Takes a free marker with its place, if there is one at once. `context` is the one that these
    /// markers belong to.
    pub(crate) fn try_take(&self, context: &Arc<CleanupContext>) -> Option<Marker> {
        let place = Arc::clone(&self.places).try_acquire_owned().ok()?;
        let free = self.pop()?;
        Some(Marker::new(Arc::clone(context), free, place))
    }

    /// Takes a marker back. True when a trim is due from now on: more than one marker is free, and no trim
    /// was due yet.
    pub(super) fn push(&self, marker: FreeMarker) -> bool {
        let mut free = self.lock();
        free.markers.push(marker);
        // One stays: most sessions that write exactly do so again.
        let begins = !free.trimming && free.markers.len() > 1;
        free.trimming |= begins;
        begins
    }

    /// Takes away the markers that were not needed since the last call, but leaves one. `None` when there is
    /// nothing left to trim.
    fn take_unneeded(&self) -> Option<Vec<FreeMarker>> {
        let mut free = self.lock();
        if free.markers.len() <= 1 {
            (free.trimming, free.unneeded) = (false, 0);
            return None;
        }
        let kept = free.markers.len() - free.unneeded.min(free.markers.len() - 1);
        let unneeded = free.markers.split_off(kept);
        free.unneeded = free.markers.len();
        Some(unneeded)
    }
}

/// Deletes markers of `context` that were not needed for a session timeout, until one is left or the
/// session has ended.
pub(super) async fn trim(context: Arc<CleanupContext>) {
    loop {
        tokio::time::sleep(context.lease.timeout()).await;
        if context.ended().is_some() {
            return;
        }
        let Some(unneeded) = context.markers.take_unneeded() else { return };
        for free in unneeded {
            let place = context.markers.place().await;
            drop(Marker::new(Arc::clone(&context), free, place));
        }
    }
}
