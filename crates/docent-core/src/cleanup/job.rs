use super::{DeleteOutcome, ExactWrite, Made, OwnedNode};
use crate::guard::SessionGeneration;
use crate::session::{Pending, SessionCloser};
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// Work for the worker of cleanups.
pub(super) enum Job {
    /// Delete a node; `sent` is the request that is under way.
    Node { node: Arc<OwnedNode>, sent: Option<Pending>, done: Option<oneshot::Sender<DeleteOutcome>> },
    /// Delete a node later, unless it is gone by then; or when the client is closed.
    Later { node: Arc<OwnedNode>, delay: Duration },
    /// Delete the node of a lost guard once its work had time to stop. When the client is closed, that waits
    /// for the work, and the node goes with the session.
    Lost { node: Arc<OwnedNode>, margin: Duration },
    /// Find out what became of a create, and undo it.
    Create {
        generation: Arc<SessionGeneration>,
        prefix: String,
        reply: Option<Pending>,
        place: Option<OwnedSemaphorePermit>,
    },
    /// Find the node of a transaction, and delete it.
    Numbered { generation: Arc<SessionGeneration>, prefix: String, czxid: i64 },
    /// Find out what became of an exact write, and undo it.
    Exact { generation: Arc<SessionGeneration>, write: ExactWrite, made: Made },
    /// Delete a marker.
    Marker { generation: Arc<SessionGeneration>, path: String, reply: Pending, place: OwnedSemaphorePermit },
    /// Delete markers that were not needed for a while.
    Trim(Arc<SessionGeneration>),
    /// Look for creates that may be applied late.
    LostCreates { generation: Arc<SessionGeneration>, folder: String },
    /// End an earlier session, or one whose close had no answer, once `after` is over: guards may be stopping
    /// their work until then.
    End { closer: SessionCloser, after: BoxFuture<'static, ()>, ended: Box<dyn FnOnce() + Send> },
    /// Tell when nothing is left to delete.
    Drained(oneshot::Sender<()>),
    /// Tell when no session is left to end.
    AllEnded(oneshot::Sender<()>),
}
