use super::Marker;
use super::own_folder::is_below;
use crate::guard::SessionGeneration;
use crate::operation::Shared;
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

    /// Takes away the free markers below the full path `root`.
    fn take_below(&self, root: &str) -> Vec<FreeMarker> {
        let mut free = self.lock();
        let left = free.markers.extract_if(.., |marker| is_below(&marker.path, root)).collect();
        free.unneeded = free.unneeded.min(free.markers.len());
        left
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

/// Deletes the free markers of `generation` below the full path `root`, which is about to be deleted, and
/// forgets that nodes may be created there.
pub(crate) async fn leave(client: &Shared, generation: &Arc<SessionGeneration>, root: &str) {
    let is_left = |base: &mut String| base == root || is_below(base, root);
    client.own_base.lock().unwrap_or_else(PoisonError::into_inner).take_if(is_left);
    generation.own_folder.forget_below(root);
    let left = generation.markers.take_below(root);
    for free in left {
        let place = generation.markers.place().await;
        drop(Marker::new(Arc::clone(generation), free, place));
    }
}

/// Deletes markers of `generation` that were not needed for a session timeout, until one is left or the
/// session has ended.
pub(super) async fn trim(generation: Arc<SessionGeneration>) {
    loop {
        tokio::time::sleep(generation.lease.timeout()).await;
        if generation.ended().is_some() {
            return;
        }
        let Some(unneeded) = generation.markers.take_unneeded() else { return };
        for free in unneeded {
            let place = generation.markers.place().await;
            drop(Marker::new(Arc::clone(&generation), free, place));
        }
    }
}
