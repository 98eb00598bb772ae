use super::doomed::Doomed;
use super::worker::CleanupWorker;
use super::{ClaimNode, Job, Made, own};
use crate::client::epoch::Epoch;
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

    pub(crate) fn delete_later(&self, epoch: &Arc<Epoch>, path: String, delay: Duration) {
        self.send(Job::Later { node: Doomed::Own { epoch: Arc::clone(epoch), path }, delay });
    }

    /// As [`delete_later`](Self::delete_later), for the node of a claim.
    pub(crate) fn release_later(&self, node: &Arc<ClaimNode>, delay: Duration) {
        self.send(Job::Later { node: Doomed::Claim(Arc::clone(node)), delay });
    }

    /// Undoes an exact write that makes ephemeral nodes, once its outcome is known.
    pub(crate) fn undo_exact(&self, epoch: &Arc<Epoch>, write: ExactWrite, made: Made) {
        self.send(Job::Exact { epoch: Arc::clone(epoch), write, made });
    }

    /// Deletes a marker, and then gives up its `place`.
    pub(crate) fn delete_marker(&self, epoch: &Arc<Epoch>, path: String, place: OwnedSemaphorePermit) {
        // Submitted now: as soon as it is applied, an unanswered write with this marker is fenced out
        // (decision 11).
        let reply = epoch.session.submit(own::delete(&path), Lane::Cleanup);
        self.send(Job::Marker { epoch: Arc::clone(epoch), path, reply, place });
    }

    /// Deletes markers that are not needed any more.
    pub(crate) fn trim_markers(&self, epoch: &Arc<Epoch>) {
        self.send(Job::Trim(Arc::clone(epoch)));
    }

    /// Looks for lost creates below `folder`, until none is left there or the session has ended.
    pub(super) fn look_for_lost(&self, epoch: &Arc<Epoch>, folder: String) {
        self.send(Job::Lost { epoch: Arc::clone(epoch), folder });
    }

    /// Undoes a create of a node whose path begins with `prefix`, once its outcome is known. `reply` waits
    /// for the outcome; without it the create may or may not have been applied.
    pub(crate) fn undo_create(&self, epoch: &Arc<Epoch>, prefix: String, reply: Option<Pending>) {
        self.send(Job::Create { epoch: Arc::clone(epoch), prefix, reply, place: None });
    }

    /// As [`undo_create`](Self::undo_create), for a marker. Its `place` is given up when it is gone, or on
    /// the list of lost creates.
    pub(crate) fn undo_marker(
        &self,
        epoch: &Arc<Epoch>,
        path: String,
        reply: Option<Pending>,
        place: Option<OwnedSemaphorePermit>,
    ) {
        self.send(Job::Create { epoch: Arc::clone(epoch), prefix: path, reply, place });
    }

    /// Deletes the node that the transaction `czxid` made, whose path is `prefix` and a number.
    pub(crate) fn undo_numbered(&self, epoch: &Arc<Epoch>, prefix: String, czxid: i64) {
        self.send(Job::Numbered { epoch: Arc::clone(epoch), prefix, czxid });
    }

    /// Ends a session that was given up, so that its nodes do not stand for as long as the servers keep it.
    pub(crate) fn end_abandoned(&self, epoch: &Arc<Epoch>) {
        if let Some(farewell) = epoch.session.farewell() {
            self.send(Job::Abandoned { epoch: Arc::clone(epoch), farewell });
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
