use super::marker::Marker;
use crate::client::epoch::Epoch;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Most markers of one session, and so most exact writes under way at the same time. Closing a session deletes all of its ephemeral
/// nodes in one transaction, which has to stay far below what the servers can read again.
const MOST: usize = 64;

/// The markers of a session.
#[derive(Debug)]
pub(crate) struct Markers {
    /// One permit for each marker that is in use or on its way out.
    places: Arc<Semaphore>,
    free: Mutex<Free>,
}

#[derive(Debug, Default)]
struct Free {
    markers: Vec<FreeMarker>,
    /// The fewest there were since the last trim: nobody has needed so many of them.
    unneeded: usize,
    /// A trim is due.
    trimming: bool,
}

/// A marker that no write is using.
#[derive(Debug)]
pub(super) struct FreeMarker {
    /// Full path.
    pub(super) path: String,
    /// Of its data.
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

    /// A place for a marker, once fewer than the most are in use.
    pub(super) async fn place(&self) -> OwnedSemaphorePermit {
        let places = Arc::clone(&self.places);
        places.acquire_owned().await.expect("the semaphore is never closed")
    }

    /// A free marker for one who has a place.
    pub(super) fn pop(&self) -> Option<FreeMarker> {
        let mut free = self.lock();
        let marker = free.markers.pop();
        free.unneeded = free.unneeded.min(free.markers.len());
        marker
    }

    /// A free marker of `epoch`, which these are the markers of, if there is one at once.
    pub(crate) fn try_take(&self, epoch: &Arc<Epoch>) -> Option<Marker> {
        let place = Arc::clone(&self.places).try_acquire_owned().ok()?;
        let free = self.pop()?;
        Some(Marker::new(Arc::clone(epoch), free, place))
    }

    /// Takes a marker back. True when it is the first for a while that may be one too many: then a trim is due.
    pub(super) fn push(&self, marker: FreeMarker) -> bool {
        let mut free = self.lock();
        free.markers.push(marker);
        // One stays: most sessions that write exactly do so again.
        let begins = !free.trimming && free.markers.len() > 1;
        free.trimming |= begins;
        begins
    }

    /// Takes away what was not needed since the last call, but one. `None` when there is nothing left to trim.
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

/// Deletes markers of `epoch` that were not needed for a session timeout, until one is left or the session has ended.
pub(crate) async fn trim(epoch: Arc<Epoch>) {
    loop {
        tokio::time::sleep(epoch.lease.timeout()).await;
        if epoch.ended().is_some() {
            return;
        }
        let Some(unneeded) = epoch.markers.take_unneeded() else { return };
        for free in unneeded {
            let place = epoch.markers.place().await;
            drop(Marker::new(Arc::clone(&epoch), free, place));
        }
    }
}
