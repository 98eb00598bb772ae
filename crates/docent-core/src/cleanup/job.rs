use super::{CreatedNodes, DeleteOutcome, ExactWrite, OwnedNode};
use crate::guard::SessionGeneration;
use crate::session::{Pending, SessionCloser};
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// Work for the cleanup worker.
pub(super) enum Job {
    /// Delete a node; `sent` is the request that is in flight.
    Node { node: Arc<OwnedNode>, sent: Option<Pending>, done: Option<oneshot::Sender<DeleteOutcome>> },
    /// Delete a node after a delay, or when the client is closed, unless the node is deleted by then.
    Later { node: Arc<OwnedNode>, delay: Duration },
    /// Delete the node of a lost guard after its work had time to stop. Closing the client waits for that
    /// work, and the node is then deleted with the session.
    Lost { node: Arc<OwnedNode>, margin: Duration },
    /// Find out whether a create was applied, and undo it.
    Create {
        generation: Arc<SessionGeneration>,
        prefix: String,
        reply: Option<Pending>,
        place: Option<OwnedSemaphorePermit>,
    },
    /// Find the node that a transaction created, and delete it.
    Numbered { generation: Arc<SessionGeneration>, prefix: String, czxid: i64 },
    /// Find out whether an exact write was applied, and undo it.
    Exact { generation: Arc<SessionGeneration>, write: ExactWrite, created: CreatedNodes },
    /// Delete a marker.
    Marker { generation: Arc<SessionGeneration>, path: String, reply: Pending, place: OwnedSemaphorePermit },
    /// Delete markers that were not needed for a while.
    Trim(Arc<SessionGeneration>),
    /// Search for creates that may be applied late.
    LostCreates { generation: Arc<SessionGeneration>, folder: String },
    /// End an earlier session, or one whose close was not answered, after `after` resolves: until then,
    /// guards may be stopping their work.
    End { closer: SessionCloser, after: BoxFuture<'static, ()>, ended: Box<dyn FnOnce() + Send> },
    /// Notify when nothing is left to delete.
    Drained(oneshot::Sender<()>),
    /// Notify when no session is left to end.
    AllEnded(oneshot::Sender<()>),
}
