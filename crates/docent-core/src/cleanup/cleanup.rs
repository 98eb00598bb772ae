use super::doomed::Doomed;
use super::worker::CleanupWorker;
use super::{ClaimNode, Job, Made, own};
use crate::client::generation::SessionGeneration;
use crate::operation::exact::ExactWrite;
use crate::session::{Lane, Pending};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};

/// Takes deletes that must happen. Never blocks, also outside a runtime.
#[derive(Debug, Clone)]
pub(crate) struct Cleanup {
    jobs: mpsc::UnboundedSender<Job>,
}

impl Cleanup {
    pub(crate) fn new() -> (Self, CleanupWorker) {
        let (jobs, queue) = mpsc::unbounded_channel();
        (Self { jobs }, CleanupWorker { queue })
    }

    pub(crate) fn delete_later(&self, generation: &Arc<SessionGeneration>, path: String, delay: Duration) {
        self.send(Job::Later { node: Doomed::Own { generation: Arc::clone(generation), path }, delay });
    }

    /// As [`delete_later`](Self::delete_later), for the node of a claim.
    pub(crate) fn release_later(&self, node: &Arc<ClaimNode>, delay: Duration) {
        self.send(Job::Later { node: Doomed::Claim(Arc::clone(node)), delay });
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
        let reply = generation.session.submit(own::delete(&path), Lane::Cleanup);
        self.send(Job::Marker { generation: Arc::clone(generation), path, reply, place });
    }

    /// Deletes markers that are not needed any more.
    pub(crate) fn trim_markers(&self, generation: &Arc<SessionGeneration>) {
        self.send(Job::Trim(Arc::clone(generation)));
    }

    /// Looks for lost creates below `folder`, until none is left there or the session has ended.
    pub(super) fn look_for_lost(&self, generation: &Arc<SessionGeneration>, folder: String) {
        self.send(Job::Lost { generation: Arc::clone(generation), folder });
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

    /// As [`undo_create`](Self::undo_create), for a marker. Its `place` is given up when it is gone, or on
    /// the list of lost creates.
    pub(crate) fn undo_marker(
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

    /// Ends a session that was given up, so that its nodes do not stand for as long as the servers keep it.
    pub(crate) fn end_abandoned(&self, generation: &Arc<SessionGeneration>) {
        if let Some(farewell) = generation.session.farewell() {
            self.send(Job::Abandoned { generation: Arc::clone(generation), farewell });
        }
    }

    /// Waits until nothing is left to do.
    pub(crate) async fn drained(&self) {
        let (done, drained) = oneshot::channel();
        self.send(Job::Drained(done));
        // The worker ends only with the client: then nothing is left either.
        let _ = drained.await;
    }

    pub(super) fn send(&self, job: Job) {
        // The worker ends with the client, whose sessions are closed then: nothing is left to delete.
        let _ = self.jobs.send(job);
    }
}
