use super::CleanupContext;
use super::markers::FreeMarker;
use crate::error::Error;
use crate::node::namespace::OWN_FOLDER;
use crate::session::{Cause, Lane, Outcome, Pending};
use crate::setup::{PARENT_ROUNDS, Setup, create_parents_by, refused_parent};
use bytes::Bytes;
use docent_proto::{Code, Create, CreateMode, Request};
use std::sync::Arc;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

/// Version from which on a marker is not used again: after the largest number comes −1, which stands for any.
const LAST_VERSION: i32 = 1 << 30;

/// Marker in use: an ephemeral node of the session, whose data is the id of the last exact write that was
/// applied with it.
///
/// # On drop
/// The node is deleted, which fences out an unanswered write with it: its name is made once and never again.
#[derive(Debug)]
pub(crate) struct Marker {
    pub(super) context: Arc<CleanupContext>,
    /// Full path.
    pub(super) path: String,
    /// Version of its data, which the next write asks for.
    pub(super) version: i32,
    /// Place among the markers in use; `None` once it was given back.
    place: Option<OwnedSemaphorePermit>,
}

/// Reason why there is no marker.
#[derive(Debug)]
pub(crate) enum NoMarker {
    Cause(Cause),
    /// The servers refuse to create it.
    Refused(Error),
}

impl Marker {
    /// Takes a marker of `context` that no other write is using, and creates one if none is free. Waits while
    /// as many are in use as a session may have, at most until `deadline`.
    ///
    /// # Cancel safety
    /// Cancel safe: a node that was being created is deleted.
    pub(crate) async fn take(
        setup: &Setup,
        context: &Arc<CleanupContext>,
        deadline: Instant,
    ) -> Result<Self, NoMarker> {
        let place = timeout_at(deadline, context.markers.place());
        let place = place.await.map_err(|_| NoMarker::Cause(Cause::Deadline))?;
        // The session may have ended while this waited for a place.
        if let Some(end) = context.ended() {
            return Err(NoMarker::Cause(Cause::Ended(end)));
        }
        match context.markers.pop() {
            Some(free) => Ok(Self::new(Arc::clone(context), free, place)),
            // On the heap, because it is rare.
            None => Box::pin(make(setup, context, deadline, place)).await,
        }
    }

    pub(super) fn new(context: Arc<CleanupContext>, free: FreeMarker, place: OwnedSemaphorePermit) -> Self {
        let FreeMarker { path, version } = free;
        Self { context, path, version, place: Some(place) }
    }

    /// Makes it free for the next write: every write with it was answered.
    pub(super) fn give_back(mut self) {
        if self.version >= LAST_VERSION {
            // The drop of the marker deletes its node.
            return;
        }
        let place = self.place.take();
        let free = FreeMarker { path: std::mem::take(&mut self.path), version: self.version };
        if self.context.markers.push(free) {
            self.context.cleanup.trim_markers(&self.context);
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
            self.context.cleanup.delete_marker(&self.context, std::mem::take(&mut self.path), place);
        }
    }
}

/// Create of a marker on its way. If it is dropped, the node is deleted as soon as its fate is known.
struct Making {
    context: Arc<CleanupContext>,
    path: String,
    create: Pending,
    /// True when the reply was lost: the node may be made late.
    unknown: bool,
    /// Place among the markers in use; `None` once it went to the marker, or to the cleanup of the node.
    place: Option<OwnedSemaphorePermit>,
}

impl Drop for Making {
    fn drop(&mut self) {
        let reply = self.create.abandon();
        if reply.is_some() || self.unknown {
            let path = std::mem::take(&mut self.path);
            self.context.cleanup.undo_marker(&self.context, path, reply, self.place.take());
        }
    }
}

async fn make(
    setup: &Setup,
    context: &Arc<CleanupContext>,
    deadline: Instant,
    mut place: OwnedSemaphorePermit,
) -> Result<Marker, NoMarker> {
    let folder = setup.namespace.full("transaction", OWN_FOLDER).map_err(NoMarker::Refused)?;
    // A fresh name, never used again: a create that is applied late makes a node that no write asks for.
    let path = format!("{folder}/{}", Uuid::new_v4());
    let mut missing_parents = 0;
    loop {
        let parents = match missing_parents {
            0 => Vec::new(),
            _ => create_parents_by(setup, context, &path, setup.config.parents, Lane::Cleanup),
        };
        let create = Create::new(path.clone(), Bytes::new(), setup.acl(&path), CreateMode::Ephemeral, 0);
        let create = context.session.submit(Request::Create(create), Lane::Cleanup);
        let mut making = Making {
            context: Arc::clone(context),
            path: path.clone(),
            create,
            unknown: false,
            place: Some(place),
        };
        let outcome = making.create.by(deadline).await;
        // A marker whose create had no reply is never used: the create might come after the delete of the
        // node (decision 11).
        making.unknown = matches!(outcome, Outcome::Unknown(_));
        let code = match outcome.answer() {
            Ok(reply) => match reply.result {
                Ok(_) => {
                    let place = making.place.take().expect("it goes with the marker or with what undoes it");
                    return Ok(Marker::new(Arc::clone(context), FreeMarker { path, version: 0 }, place));
                }
                Err(code) => code,
            },
            Err(cause) => return Err(NoMarker::Cause(cause)),
        };
        place = making.place.take().expect("it goes with the marker or with what undoes it");
        match code {
            Code::NO_NODE if missing_parents < PARENT_ROUNDS => {
                let refused = Box::pin(refused_parent(setup, "transaction", &path, parents)).await;
                refused.map_or(Ok(()), |error| Err(NoMarker::Refused(error)))?;
                missing_parents += 1;
            }
            code => {
                let error = Error::from_code(code, "transaction").at(&setup.namespace.relative(&path));
                return Err(NoMarker::Refused(error));
            }
        }
    }
}
