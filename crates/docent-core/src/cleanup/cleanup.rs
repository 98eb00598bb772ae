use super::by_name::delete_request;
use super::worker::CleanupWorker;
use super::{ExactWrite, Job, Made, OwnedNode};
use crate::guard::SessionGeneration;
use crate::session::{Lane, Pending, SessionCloser};
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};

/// Takes deletes that must happen. Never blocks, also outside a runtime.
#[derive(Debug, Clone)]
pub(crate) struct Cleanup {
    /// Boxed, as the queue has room for 32 of them from the beginning.
    jobs: mpsc::UnboundedSender<Box<Job>>,
}

impl Cleanup {
    pub(crate) fn new() -> (Self, CleanupWorker) {
        let (jobs, queue) = mpsc::unbounded_channel();
        (Self { jobs }, CleanupWorker { queue })
    }

    /// Deletes `node` after `delay`, or when the client is closed, unless a handle saw to its end by then.
    pub(crate) fn delete_later(&self, node: &Arc<OwnedNode>, delay: Duration) {
        self.send(Job::Later { node: Arc::clone(node), delay });
    }

    /// Deletes the `node` of a lost guard once its work had a `margin` to stop, unless a handle saw to its
    /// end by then.
    pub(crate) fn delete_lost(&self, node: &Arc<OwnedNode>, margin: Duration) {
        self.send(Job::Lost { node: Arc::clone(node), margin });
    }

    /// Undoes an exact write that makes ephemeral nodes, once its outcome is known.
    pub(crate) fn undo_exact(&self, generation: &Arc<SessionGeneration>, write: ExactWrite, made: Made) {
        self.send(Job::Exact { generation: Arc::clone(generation), write, made });
    }

    /// Deletes a marker, and then gives up its `place`.
    pub(crate) fn delete_marker(
        &self,
        generation: &Arc<SessionGeneration>,
        path: String,
        place: OwnedSemaphorePermit,
    ) {
        // Submitted now: as soon as it is applied, an unanswered write with this marker is fenced out
        // (decision 11).
        let reply = generation.session.submit(delete_request(&path), Lane::Cleanup);
        self.send(Job::Marker { generation: Arc::clone(generation), path, reply, place });
    }

    /// Deletes markers that are not needed any more.
    pub(crate) fn trim_markers(&self, generation: &Arc<SessionGeneration>) {
        self.send(Job::Trim(Arc::clone(generation)));
    }

    /// Looks for lost creates below `folder`, until none is left there or the session has ended.
    pub(super) fn look_for_lost(&self, generation: &Arc<SessionGeneration>, folder: String) {
        self.send(Job::LostCreates { generation: Arc::clone(generation), folder });
    }

    /// Undoes a create of a node whose path begins with `prefix`, once its outcome is known. `reply` waits
    /// for the outcome; without it the create may or may not have been applied.
    pub(crate) fn undo_create(
        &self,
        generation: &Arc<SessionGeneration>,
        prefix: String,
        reply: Option<Pending>,
    ) {
        self.send(Job::Create { generation: Arc::clone(generation), prefix, reply, place: None });
    }

    /// As [`undo_create`](Self::undo_create), for a node of the session's own. The `place` of a marker is
    /// given up when it is gone, or on the list of lost creates.
    pub(crate) fn undo_own_node(
        &self,
        generation: &Arc<SessionGeneration>,
        path: String,
        reply: Option<Pending>,
        place: Option<OwnedSemaphorePermit>,
    ) {
        self.send(Job::Create { generation: Arc::clone(generation), prefix: path, reply, place });
    }

    /// Deletes the node that the transaction `czxid` made, whose path is `prefix` and a number.
    pub(crate) fn undo_numbered(&self, generation: &Arc<SessionGeneration>, prefix: String, czxid: i64) {
        self.send(Job::Numbered { generation: Arc::clone(generation), prefix, czxid });
    }

    /// Ends a session on a link of its own once `after` is over, so that its nodes do not stand for as long
    /// as the servers keep it. Calls `ended` when it is over.
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
        // The worker ends only with the client: then nothing is left either.
        let _ = drained.await;
    }

    /// Waits until no session is left to [end](Self::end_session).
    pub(crate) async fn all_ended(&self) {
        let (done, ended) = oneshot::channel();
        self.send(Job::AllEnded(done));
        let _ = ended.await;
    }

    pub(super) fn send(&self, job: Job) {
        // The worker ends with the client, whose sessions are closed then: nothing is left to delete.
        let _ = self.jobs.send(Box::new(job));
    }
}
