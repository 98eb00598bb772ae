use super::markers::FreeMarker;
use super::{Near, NoOwnNode, create_own_node};
use crate::guard::SessionGeneration;
use crate::operation::Shared;
use crate::session::Cause;
use std::sync::Arc;
use tokio::sync::OwnedSemaphorePermit;
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
        let node = Box::pin(create_own_node(client, generation, near, Some(place), deadline)).await?;
        Ok(Self { generation: Arc::clone(generation), path: node.path, version: 0, place: node.place })
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
