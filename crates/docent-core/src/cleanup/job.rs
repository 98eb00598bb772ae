use super::doomed::{Delete, Doomed};
use super::{Left, Made};
use crate::client::epoch::Epoch;
use crate::operation::exact::ExactWrite;
use crate::session::{Farewell, Pending};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// Work for the worker of cleanups.
#[derive(Debug)]
pub(super) enum Job {
    /// Delete a node.
    Node { node: Doomed, delete: Delete, done: Option<oneshot::Sender<Left>> },
    /// Delete a node later, unless it is gone by then.
    Later { node: Doomed, delay: Duration },
    /// Find out what became of a create, and undo it.
    Create { epoch: Arc<Epoch>, prefix: String, reply: Option<Pending>, place: Option<OwnedSemaphorePermit> },
    /// Find the node of a transaction, and delete it.
    Numbered { epoch: Arc<Epoch>, prefix: String, czxid: i64 },
    /// Find out what became of an exact write, and undo it.
    Exact { epoch: Arc<Epoch>, write: ExactWrite, made: Made },
    /// Delete a marker.
    Marker { epoch: Arc<Epoch>, path: String, reply: Pending, place: OwnedSemaphorePermit },
    /// Delete markers that were not needed for a while.
    Trim(Arc<Epoch>),
    /// Look for creates that may be applied late.
    Lost { epoch: Arc<Epoch>, folder: String },
    /// End a session that was given up, once its guards are dropped: until then they may stop their work.
    Abandoned { epoch: Arc<Epoch>, farewell: Farewell },
    /// Tell when nothing is left to do.
    Drained(oneshot::Sender<()>),
}
