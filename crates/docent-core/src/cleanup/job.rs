use super::deletion::Delete;
use super::{CleanupContext, DeleteOutcome, ExactWrite, Made, OwnedNode};
use crate::session::{Pending, SessionCloser};
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// Work for the worker of cleanups.
pub(super) enum Job {
    /// Delete a node.
    Node { node: Arc<OwnedNode>, delete: Delete, done: Option<oneshot::Sender<DeleteOutcome>> },
    /// Delete a node later, unless it is gone by then.
    Later { node: Arc<OwnedNode>, delay: Duration },
    /// Find out what became of a create, and undo it.
    Create {
        context: Arc<CleanupContext>,
        prefix: String,
        reply: Option<Pending>,
        place: Option<OwnedSemaphorePermit>,
    },
    /// Find the node of a transaction, and delete it.
    Numbered { context: Arc<CleanupContext>, prefix: String, czxid: i64 },
    /// Find out what became of an exact write, and undo it.
    Exact { context: Arc<CleanupContext>, write: ExactWrite, made: Made },
    /// Delete a marker.
    Marker { context: Arc<CleanupContext>, path: String, reply: Pending, place: OwnedSemaphorePermit },
    /// Delete markers that were not needed for a while.
    Trim(Arc<CleanupContext>),
    /// Look for creates that may be applied late.
    Lost { context: Arc<CleanupContext>, folder: String },
    /// End a session that was given up, once `after` is over: guards may be stopping their work until then.
    Abandoned { closer: SessionCloser, after: BoxFuture<'static, ()>, ended: Box<dyn FnOnce() + Send> },
    /// Tell when nothing is left to do.
    Drained(oneshot::Sender<()>),
}
