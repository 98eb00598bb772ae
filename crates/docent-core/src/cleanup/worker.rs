use super::by_name::{delete_node, undo_create};
use super::exact_write::{undo_exact, undo_numbered};
use super::lost_creates::search_for_lost;
use super::marker::trim;
use super::owned_node::delete;
use super::{CreatedNodes, DeleteOutcome, ExactWrite, OwnedNode};
use crate::guard::SessionGeneration;
use crate::operation::Shared;
use crate::session::link::dialer::Start;
use crate::session::{Pending, SessionCloser};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};

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

pub(crate) struct CleanupWorker {
    pub(super) queue: mpsc::UnboundedReceiver<Box<Job>>,
}

impl CleanupWorker {
    /// Runs until the client is closed.
    pub(crate) async fn run(mut self, client: Arc<Shared>) {
        let mut open: FuturesUnordered<BoxFuture<'_, ()>> = FuturesUnordered::new();
        // Jobs that end with the session at the latest, and that no caller waits for.
        let mut background: FuturesUnordered<BoxFuture<'_, ()>> = FuturesUnordered::new();
        // Sessions to end.
        let mut sessions: FuturesUnordered<BoxFuture<'_, ()>> = FuturesUnordered::new();
        let (mut drained, mut all_ended) = (Vec::new(), Vec::new());
        loop {
            client.instruments.cleanups(open.len() + sessions.len());
            notify_all_if(open.is_empty(), &mut drained);
            notify_all_if(sessions.is_empty(), &mut all_ended);
            let job = tokio::select! {
                biased;
                Some(()) = open.next() => continue,
                Some(()) = background.next() => continue,
                Some(()) = sessions.next() => continue,
                job = self.queue.recv() => job,
                () = client.finished.cancelled() => return,
            };
            let client = client.as_ref();
            match job.map(|job| *job) {
                None => return,
                Some(Job::Drained(done)) => drained.push(done),
                Some(Job::AllEnded(done)) => all_ended.push(done),
                Some(Job::Node { node, sent, done }) => open.push(guarded(async move {
                    let outcome = delete(client, &node, sent).await;
                    if let Some(done) = done {
                        let _ = done.send(outcome);
                    }
                })),
                Some(Job::Later { node, delay }) => open.push(guarded(async move {
                    tokio::select! {
                        () = tokio::time::sleep(delay) => {}
                        () = client.closing.cancelled() => {}
                    }
                    delete_remaining(client, &node).await;
                })),
                Some(Job::Lost { node, margin }) => open.push(guarded(async move {
                    tokio::select! {
                        () = tokio::time::sleep(margin) => delete_remaining(client, &node).await,
                        () = client.closing.cancelled() => {}
                    }
                })),
                Some(Job::Exact { generation, write, created }) => {
                    open.push(guarded(undo_exact(client, generation, write, created)));
                }
                Some(Job::Marker { generation, path, reply, place }) => open.push(guarded(async move {
                    let _ = delete_node(client, generation, path, Some(reply)).await;
                    drop(place);
                })),
                Some(Job::Trim(generation)) => background.push(guarded(trim(generation))),
                Some(Job::LostCreates { generation, folder }) => {
                    background.push(guarded(search_for_lost(client, generation, folder)));
                }
                Some(Job::End { closer, after, ended }) => sessions.push(guarded(async move {
                    after.await;
                    if end_session(client, closer).await {
                        ended();
                    }
                })),
                Some(Job::Create { generation, prefix, reply, place }) => open.push(guarded(async move {
                    undo_create(client, generation, prefix, reply).await;
                    drop(place);
                })),
                Some(Job::Numbered { generation, prefix, czxid }) => {
                    background.push(guarded(undo_numbered(client, generation, prefix, czxid)));
                }
            }
        }
    }
}

/// Deletes a node if no handle has taken care of the deletion.
async fn delete_remaining(client: &Shared, node: &OwnedNode) {
    if node.begin_deletion()
        && let DeleteOutcome::Refused(_) = delete(client, node, None).await
    {
        node.deletion_failed();
    }
}

/// Notifies the waiting callers if `is_done` is true.
fn notify_all_if(is_done: bool, waiting: &mut Vec<oneshot::Sender<()>>) {
    if is_done {
        for waiting in waiting.drain(..) {
            let _ = waiting.send(());
        }
    }
}

/// Ends a session. Many clients may have lost their sessions at the same time, so the connection is delayed
/// by a random time, until the client is closed. Returns false if the session is not known to have ended.
async fn end_session(client: &Shared, closer: SessionCloser) -> bool {
    let Shared { ensemble, closing, .. } = client;
    let end = async {
        let timeout = closer.timeout;
        if !closer.clone().run(ensemble, Start::Jittered).await {
            // The servers expire the session within this time.
            tokio::time::sleep(timeout * 2).await;
        }
    };
    tokio::select! {
        () = end, if !closing.is_cancelled() => return true,
        () = closing.cancelled() => {}
    }
    closer.run(ensemble, Start::Immediately).await
}

/// Keeps a panic in one job from ending all other jobs.
fn guarded<'a>(job: impl Future<Output = ()> + Send + 'a) -> BoxFuture<'a, ()> {
    let caught = AssertUnwindSafe(job).catch_unwind();
    caught
        .map(|ended| {
            if ended.is_err() {
                // Event: A background deletion panicked, which is a defect of this library. The node remains
                // until its session ends.
                // Action: Report the panic. Restart the client if the node must disappear now.
                // Without client: the job does not know it.
                tracing::error!(target: "docent::cleanup", "a background deletion panicked; its node remains until its session ends");
            }
        })
        .boxed()
}
