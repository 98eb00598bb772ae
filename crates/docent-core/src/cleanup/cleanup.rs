use super::by_name::delete_request;
use super::worker::CleanupWorker;
use super::{CreatedNodes, ExactWrite, Job, OwnedNode};
use crate::guard::SessionGeneration;
use crate::session::{Lane, Pending, SessionCloser};
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};

/// Accepts deletes that must happen. Never blocks, even outside a runtime.
#[derive(Debug, Clone)]
pub(crate) struct Cleanup {
    /// Boxed, because the channel allocates room for 32 jobs upfront.
    jobs: mpsc::UnboundedSender<Box<Job>>,
}

impl Cleanup {
    pub(crate) fn new() -> (Self, CleanupWorker) {
        let (jobs, queue) = mpsc::unbounded_channel();
        (Self { jobs }, CleanupWorker { queue })
    }

    /// Deletes `node` after `delay`, or when the client is closed, unless a handle has taken care of the
    /// deletion by then.
    pub(crate) fn delete_later(&self, node: &Arc<OwnedNode>, delay: Duration) {
        self.send(Job::Later { node: Arc::clone(node), delay });
    }

    /// Deletes the `node` of a lost guard after the guard's work had a `margin` to stop, unless a handle has
    /// taken care of the deletion by then.
    pub(crate) fn delete_lost(&self, node: &Arc<OwnedNode>, margin: Duration) {
        self.send(Job::Lost { node: Arc::clone(node), margin });
    }

    /// Undoes an exact write that creates ephemeral nodes, once its outcome is known.
    pub(crate) fn undo_exact(
        &self,
        generation: &Arc<SessionGeneration>,
        write: ExactWrite,
        created: CreatedNodes,
    ) {
        self.send(Job::Exact { generation: Arc::clone(generation), write, created });
    }

    /// Deletes a marker, and then releases its `place`.
    pub(crate) fn delete_marker(
        &self,
        generation: &Arc<SessionGeneration>,
        path: String,
        place: OwnedSemaphorePermit,
    ) {
        // Submitted now: when the delete is applied, an unanswered write with this marker is fenced out
        // (decision 11).
        let reply = generation.session.submit(delete_request(&path), Lane::Cleanup);
        self.send(Job::Marker { generation: Arc::clone(generation), path, reply, place });
    }

    /// Deletes markers that are no longer needed.
    pub(crate) fn trim_markers(&self, generation: &Arc<SessionGeneration>) {
        self.send(Job::Trim(Arc::clone(generation)));
    }

    /// Searches for lost creates below `folder`, until none is left there or the session has ended.
    pub(super) fn search_for_lost(&self, generation: &Arc<SessionGeneration>, folder: String) {
        self.send(Job::LostCreates { generation: Arc::clone(generation), folder });
    }

    /// Undoes a create of a node whose path begins with `prefix`, once its outcome is known. `reply` waits
    /// for the outcome. If there is no `reply`, the create may or may not have been applied.
    pub(crate) fn undo_create(
        &self,
        generation: &Arc<SessionGeneration>,
        prefix: String,
        reply: Option<Pending>,
    ) {
        self.send(Job::Create { generation: Arc::clone(generation), prefix, reply, place: None });
    }

    /// Same as [`undo_create`](Self::undo_create), for an internal node of the session. The `place` of a
    /// marker is released when the node is deleted, or entered in the list of lost creates.
    pub(crate) fn undo_own_node(
        &self,
        generation: &Arc<SessionGeneration>,
        path: String,
        reply: Option<Pending>,
        place: Option<OwnedSemaphorePermit>,
    ) {
        self.send(Job::Create { generation: Arc::clone(generation), prefix: path, reply, place });
    }

    /// Deletes the node that the transaction `czxid` created, whose path is `prefix` and a number.
    pub(crate) fn undo_numbered(&self, generation: &Arc<SessionGeneration>, prefix: String, czxid: i64) {
        self.send(Job::Numbered { generation: Arc::clone(generation), prefix, czxid });
    }

    /// Ends a session on a dedicated link after `after` resolves, so that its nodes do not remain until the
    /// servers expire the session. Calls `ended` when the session has ended.
    pub(crate) fn end_session(
        &self,
        closer: SessionCloser,
        after: BoxFuture<'static, ()>,
        ended: Box<dyn FnOnce() + Send>,
    ) {
        self.send(Job::End { closer, after, ended });
    }

    /// Waits until nothing is left to delete.
    pub(crate) async fn drained(&self) {
        let (done, drained) = oneshot::channel();
        self.send(Job::Drained(done));
        // If the worker has ended, the client is closed and nothing is left to delete.
        let _ = drained.await;
    }

    /// Waits until no session is left to [end](Self::end_session).
    pub(crate) async fn all_ended(&self) {
        let (done, ended) = oneshot::channel();
        self.send(Job::AllEnded(done));
        let _ = ended.await;
    }

    pub(super) fn send(&self, job: Job) {
        // The worker ends with the client, which closes its sessions: nothing is left to delete.
        let _ = self.jobs.send(Box::new(job));
    }
}
