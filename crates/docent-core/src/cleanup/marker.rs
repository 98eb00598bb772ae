use super::markers::FreeMarker;
use super::{Near, NoOwnNode, create_own_node};
use crate::guard::SessionGeneration;
use crate::operation::Shared;
use crate::session::Cause;
use std::sync::Arc;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout_at};

/// Version from which on a marker is not used again: after the largest number comes −1, which stands for any.
const LAST_VERSION: i32 = 1 << 30;

/// Marker in use: an ephemeral node of the session, whose data is the id of the last exact write that was
/// applied with it.
///
/// # On drop
/// The node is deleted, which fences out an unanswered write with it: its name is made once and never again.
#[derive(Debug)]
pub(crate) struct Marker {
    pub(super) generation: Arc<SessionGeneration>,
    /// Full path.
    pub(super) path: String,
    /// Version of its data, which the next write asks for.
    pub(super) version: i32,
    /// Place among the markers in use; `None` once it was given back.
    place: Option<OwnedSemaphorePermit>,
}

impl Marker {
    /// Takes a marker of `generation` that no other write is using, and creates one if none is free: near
    /// what is about to be written, if the session has no place yet. Waits while as many are in use as a
    /// session may have, at most until `deadline`.
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
        // The session may have ended while this waited for a place.
        if let Some(end) = generation.ended() {
            return Err(NoOwnNode::Cause(Cause::Ended(end)));
        }
        if let Some(free) = generation.markers.pop() {
            return Ok(Self::new(Arc::clone(generation), free, place));
        }
        // On the heap, because it is rare.
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

    /// Makes it free for the next write: every write with it was answered.
    pub(super) fn give_back(mut self) {
        if self.version >= LAST_VERSION {
            // The drop of the marker deletes its node.
            return;
        }
        let place = self.place.take();
        let free = FreeMarker { path: std::mem::take(&mut self.path), version: self.version };
        if self.generation.markers.push(free) {
            self.generation.cleanup.trim_markers(&self.generation);
        }
        drop(place);
    }

    /// Makes a marker free that no write was sent with.
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
