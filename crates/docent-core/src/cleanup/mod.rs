//! Deletes that must happen: released tickets and creates whose future was dropped or whose reply was lost.
//!
//! `Drop` submits the delete in order with other calls and hands what is left to the one worker of the client. The worker
//! tries until the node is gone, or until the session that owned it is gone by the servers' word.

mod claim;
mod doomed;
mod leaving;
mod own;
mod worker;

use doomed::Doomed;
pub(crate) use leaving::{Leaving, Left};
pub(crate) use own::epoch_find;
use worker::CleanupWorker;

use crate::claim::ClaimNode;
use crate::epoch::Epoch;
use crate::session::{Farewell, Pending};
use bytes::Bytes;
use docent_proto::Code;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// Between attempts when a server answers that it will not do it now.
pub(crate) const PAUSE: Duration = Duration::from_millis(200);

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

    /// Undoes claims once their outcome is known. `reply` is the outcome if it is still to come.
    pub(crate) fn undo_claims(
        &self,
        epoch: &Arc<Epoch>,
        paths: Vec<String>,
        id: Bytes,
        reply: Option<Pending>,
    ) {
        self.send(Job::Claims { epoch: Arc::clone(epoch), paths, id, reply });
    }

    /// Undoes a create of a node whose path begins with `prefix`, once its outcome is known. `reply` is the outcome if it
    /// is still to come; without it the create may or may not have been applied.
    pub(crate) fn undo_create(&self, epoch: &Arc<Epoch>, prefix: String, reply: Option<Pending>) {
        self.send(Job::Create { epoch: Arc::clone(epoch), prefix, reply });
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

    fn send(&self, job: Job) {
        // Without a worker the client is closed, and its sessions with it.
        let _ = self.jobs.send(job);
    }
}

#[derive(Debug)]
enum Job {
    /// Delete a node.
    Node { node: Doomed, reply: Pending, done: Option<oneshot::Sender<Left>> },
    /// Delete a node later, unless it is gone by then.
    Later { node: Doomed, delay: Duration },
    /// Find out what became of a create, and undo it.
    Create { epoch: Arc<Epoch>, prefix: String, reply: Option<Pending> },
    /// Find out what became of claims that were made together, and undo them. All have `id` for their data.
    Claims { epoch: Arc<Epoch>, paths: Vec<String>, id: Bytes, reply: Option<Pending> },
    /// End a session that was given up, once its guards are dropped: until then they may stop their work.
    Abandoned { epoch: Arc<Epoch>, farewell: Farewell },
    /// Tell when nothing is left to do.
    Drained(oneshot::Sender<()>),
}

/// True for a refusal that will not change by itself.
fn is_final(code: Code) -> bool {
    matches!(code, Code::NO_AUTH | Code::NOT_EMPTY | Code::BAD_ARGUMENTS)
}
