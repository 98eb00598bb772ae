use super::doomed::{Delete, Doomed};
use super::{Left, Made};
use crate::client::generation::SessionGeneration;
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
    Lost { generation: Arc<SessionGeneration>, folder: String },
    /// End a session that was given up, once its guards are dropped: until then they may stop their work.
    Abandoned { generation: Arc<SessionGeneration>, farewell: Farewell },
    /// Tell when nothing is left to do.
    Drained(oneshot::Sender<()>),
}
