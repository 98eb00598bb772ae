use super::own_folder::is_below;
use super::{Near, NoOwnNode, create_own_node};
use crate::guard::SessionGeneration;
use crate::operation::Shared;
use crate::session::Cause;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

/// Version from which on a marker is not reused: the version after the largest number is −1, which matches
/// any version.
const LAST_VERSION: i32 = 1 << 30;

/// A marker in use: an ephemeral node of the session, whose data is the id of the last exact write that was
/// applied with it.
///
/// # On drop
/// The node is deleted, which fences out an unanswered write with this marker: the name is never used again.
#[derive(Debug)]
pub(crate) struct Marker {
    pub(super) generation: Arc<SessionGeneration>,
    /// Full path.
    pub(super) path: String,
    /// Version of the marker's data, which the next write expects.
    pub(super) version: i32,
    /// Place among the markers in use; `None` after it was returned.
    place: Option<OwnedSemaphorePermit>,
}

impl Marker {
    /// Takes a marker of `generation` that no other write is using. Creates one if none is free; if the
    /// session has no folder yet, near the path to be written. If the maximum number of markers is in use,
    /// waits at most until `deadline`.
    ///
    /// # Cancel safety
    /// Cancel safe: a node that was being created is deleted.
    pub(crate) async fn take(
        client: &Shared,
        generation: &Arc<SessionGeneration>,
        near: Near<'_>,
        deadline: Instant,
    ) -> Result<Self, NoOwnNode> {
        let place = timeout_at(deadline, generation.markers.place());
        let place = place.await.map_err(|_| NoOwnNode::Cause(Cause::Deadline))?;
        // The session may have ended during the wait for a place.
        if let Some(end) = generation.ended() {
            return Err(NoOwnNode::Cause(Cause::Ended(end)));
        }
        if let Some(free) = generation.markers.pop() {
            return Ok(Self::new(Arc::clone(generation), free, place));
        }
        // Boxed because this is rare.
        let mut place = Some(place);
        let path = Box::pin(create_own_node(client, generation, near, &mut place, deadline)).await?;
        Ok(Self { generation: Arc::clone(generation), path, version: 0, place })
    }

    pub(super) fn new(
        generation: Arc<SessionGeneration>,
        free: FreeMarker,
        place: OwnedSemaphorePermit,
    ) -> Self {
        let FreeMarker { path, version } = free;
        Self { generation, path, version, place: Some(place) }
    }

    /// Frees the marker for the next write, after every write with it was answered.
    pub(super) fn give_back(mut self) {
        if self.version >= LAST_VERSION {
            // Dropping the marker deletes its node.
            return;
        }
        let place = self.place.take();
        let free = FreeMarker { path: std::mem::take(&mut self.path), version: self.version };
        if self.generation.markers.push(free) {
            self.generation.cleanup.trim_markers(&self.generation);
        }
        drop(place);
    }

    /// Frees a marker that no write was sent with.
    pub(crate) fn unused(self) {
        self.give_back();
    }
}

impl Drop for Marker {
    fn drop(&mut self) {
        if let Some(place) = self.place.take() {
            self.generation.cleanup.delete_marker(&self.generation, std::mem::take(&mut self.path), place);
        }
    }
}

/// Maximum number of markers of one session, and therefore of its concurrent exact writes. Closing a session
/// deletes all its ephemeral nodes in one transaction, which must stay far below the size that the servers
/// can read back.
const MAX_MARKERS: usize = 64;

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
    /// Minimum number of free markers since the last trim, which is the number of unneeded markers.
    surplus: usize,
    /// Set while a trim is pending.
    trimming: bool,
}

/// A marker that no write is using.
#[derive(Debug)]
pub(super) struct FreeMarker {
    /// Full path.
    pub(super) path: String,
    /// Version of the marker's data.
    pub(super) version: i32,
}

impl Default for Markers {
    fn default() -> Self {
        Self { places: Arc::new(Semaphore::new(MAX_MARKERS)), free: Mutex::default() }
    }
}

impl Markers {
    fn lock(&self) -> MutexGuard<'_, Free> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a place for a marker, until fewer than the maximum number are in use.
    pub(super) async fn place(&self) -> OwnedSemaphorePermit {
        let places = Arc::clone(&self.places);
        places.acquire_owned().await.expect("the semaphore is never closed")
    }

    /// Takes a free marker; the caller has a place.
    pub(super) fn pop(&self) -> Option<FreeMarker> {
        let mut free = self.lock();
        let marker = free.markers.pop();
        free.surplus = free.surplus.min(free.markers.len());
        marker
    }

    /// Takes a marker back. Returns true if a trim must be scheduled: more than one marker is free, and no
    /// trim is pending.
    pub(super) fn push(&self, marker: FreeMarker) -> bool {
        let mut free = self.lock();
        free.markers.push(marker);
        // One marker is kept, because most sessions with exact writes make further ones.
        let begins = !free.trimming && free.markers.len() > 1;
        free.trimming |= begins;
        begins
    }

    /// Removes and returns the free markers below the full path `root`.
    fn take_below(&self, root: &str) -> Vec<FreeMarker> {
        let mut free = self.lock();
        let left = free.markers.extract_if(.., |marker| is_below(&marker.path, root)).collect();
        free.surplus = free.surplus.min(free.markers.len());
        left
    }

    /// Removes and returns the markers that were not needed since the last call, but keeps one. Returns
    /// `None` if nothing is left to trim.
    fn take_surplus(&self) -> Option<Vec<FreeMarker>> {
        let mut free = self.lock();
        if free.markers.len() <= 1 {
            (free.trimming, free.surplus) = (false, 0);
            return None;
        }
        let kept = free.markers.len() - free.surplus.min(free.markers.len() - 1);
        let surplus = free.markers.split_off(kept);
        free.surplus = free.markers.len();
        Some(surplus)
    }
}

/// Deletes the free markers of `generation` below the full path `root`, which is about to be deleted, and
/// forgets that nodes may be created there.
pub(crate) async fn leave(client: &Shared, generation: &Arc<SessionGeneration>, root: &str) {
    let is_in_tree = |base: &mut String| base == root || is_below(base, root);
    client.own_base.lock().unwrap_or_else(PoisonError::into_inner).take_if(is_in_tree);
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
        let Some(surplus) = generation.markers.take_surplus() else { return };
        for free in surplus {
            let place = generation.markers.place().await;
            drop(Marker::new(Arc::clone(&generation), free, place));
        }
    }
}
