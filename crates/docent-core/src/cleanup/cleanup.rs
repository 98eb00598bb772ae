use super::by_name::{delete_owned, delete_request, undo_create};
use super::exact_write::{undo_exact, undo_numbered};
use super::lost_creates::search_for_lost;
use super::marker::trim;
use super::owned_node::delete;
use super::{CreatedNodes, DeleteOutcome, ExactWrite, OwnedNode};
use crate::guard::SessionGeneration;
use crate::operation::Shared;
use crate::session::link::dialer::Start;
use crate::session::{Lane, Pending, SessionCloser};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::panic::AssertUnwindSafe;
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
        let node = Arc::clone(node);
        self.run(Job::Delete, move |client| async move {
            tokio::select! {
                () = tokio::time::sleep(delay) => {}
                () = client.closing.cancelled() => {}
            }
            delete_remaining(&client, &node).await;
        });
    }

    /// Deletes the `node` of a lost guard after the guard's work had a `margin` to stop, unless a handle has
    /// taken care of the deletion by then. Closing the client waits for that work, and the node is then
    /// deleted with the session.
    pub(crate) fn delete_lost(&self, node: &Arc<OwnedNode>, margin: Duration) {
        let node = Arc::clone(node);
        self.run(Job::Delete, move |client| async move {
            tokio::select! {
                () = tokio::time::sleep(margin) => delete_remaining(&client, &node).await,
                () = client.closing.cancelled() => {}
            }
        });
    }

    /// Undoes an exact write that creates ephemeral nodes, once its outcome is known.
    pub(crate) fn undo_exact(
        &self,
        generation: &Arc<SessionGeneration>,
        write: ExactWrite,
        created: CreatedNodes,
    ) {
        let generation = Arc::clone(generation);
        self.run(
            Job::Delete,
            move |client| async move { undo_exact(&client, generation, write, created).await },
        );
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
        let generation = Arc::clone(generation);
        self.run(Job::Delete, move |client| async move {
            delete_owned(&client, generation.number, generation, path, Some(reply)).await;
            drop(place);
        });
    }

    /// Deletes markers that are no longer needed.
    pub(crate) fn trim_markers(&self, generation: &Arc<SessionGeneration>) {
        let generation = Arc::clone(generation);
        self.run(Job::Background, move |_| trim(generation));
    }

    /// Searches for lost creates below `folder`, until none is left there or the session has ended.
    pub(super) fn search_for_lost(&self, generation: &Arc<SessionGeneration>, folder: String) {
        let generation = Arc::clone(generation);
        self.run(
            Job::Background,
            move |client| async move { search_for_lost(&client, generation, folder).await },
        );
    }

    /// Undoes a create of a node whose path begins with `prefix`, once its outcome is known. `reply` waits
    /// for the outcome. If there is no `reply`, the create may or may not have been applied.
    pub(crate) fn undo_create(
        &self,
        generation: &Arc<SessionGeneration>,
        prefix: String,
        reply: Option<Pending>,
    ) {
        self.undo_own_node(generation, prefix, reply, None);
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
        let generation = Arc::clone(generation);
        self.run(Job::Delete, move |client| async move {
            undo_create(&client, generation, path, reply).await;
            drop(place);
        });
    }

    /// Deletes the node that the transaction `czxid` created, whose path is `prefix` and a number.
    pub(crate) fn undo_numbered(&self, generation: &Arc<SessionGeneration>, prefix: String, czxid: i64) {
        let generation = Arc::clone(generation);
        self.run(Job::Background, move |client| async move {
            undo_numbered(&client, generation, prefix, czxid).await;
        });
    }

    /// Ends a session on a dedicated link, so that its nodes do not remain until the servers expire the
    /// session. Waits until `after` resolves, because guards may be stopping their work until then. Calls
    /// `ended` when the session has ended.
    pub(crate) fn end_session(
        &self,
        closer: SessionCloser,
        after: BoxFuture<'static, ()>,
        ended: Box<dyn FnOnce() + Send>,
    ) {
        self.run(Job::EndSession, move |client| async move {
            after.await;
            if end_session(&client, closer).await {
                ended();
            }
        });
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

    /// Deletes a node; `sent` is the request that is in flight.
    pub(super) fn delete(
        &self,
        node: &Arc<OwnedNode>,
        sent: Option<Pending>,
        done: Option<oneshot::Sender<DeleteOutcome>>,
    ) {
        let node = Arc::clone(node);
        self.run(Job::Delete, move |client| async move {
            let outcome = delete(&client, &node, sent).await;
            if let Some(done) = done {
                let _ = done.send(outcome);
            }
        });
    }

    fn run<F>(&self, kind: fn(Work) -> Job, work: impl FnOnce(Arc<Shared>) -> F + Send + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.send(kind(Box::new(move |client| guarded(work(client)))));
    }

    fn send(&self, job: Job) {
        // The worker ends with the client, which closes its sessions: nothing is left to delete.
        let _ = self.jobs.send(Box::new(job));
    }
}

/// Work for the cleanup worker.
enum Job {
    /// Delete nodes, or find out whether there is something to delete.
    Delete(Work),
    /// The same for work that ends with the session at the latest, and that no caller waits for.
    Background(Work),
    /// End an earlier session, or one whose close was not answered.
    EndSession(Work),
    /// Notify when nothing is left to delete.
    Drained(oneshot::Sender<()>),
    /// Notify when no session is left to end.
    AllEnded(oneshot::Sender<()>),
}

/// Starts the work of a job.
type Work = Box<dyn FnOnce(Arc<Shared>) -> BoxFuture<'static, ()> + Send>;

pub(crate) struct CleanupWorker {
    queue: mpsc::UnboundedReceiver<Box<Job>>,
}

impl CleanupWorker {
    /// Runs until the client is closed.
    pub(crate) async fn run(mut self, client: Arc<Shared>) {
        let mut open: FuturesUnordered<BoxFuture<'static, ()>> = FuturesUnordered::new();
        let mut background: FuturesUnordered<BoxFuture<'static, ()>> = FuturesUnordered::new();
        let mut sessions: FuturesUnordered<BoxFuture<'static, ()>> = FuturesUnordered::new();
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
            match job.map(|job| *job) {
                None => return,
                Some(Job::Delete(work)) => open.push(work(Arc::clone(&client))),
                Some(Job::Background(work)) => background.push(work(Arc::clone(&client))),
                Some(Job::EndSession(work)) => sessions.push(work(Arc::clone(&client))),
                Some(Job::Drained(done)) => drained.push(done),
                Some(Job::AllEnded(done)) => all_ended.push(done),
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
fn guarded(job: impl Future<Output = ()> + Send + 'static) -> BoxFuture<'static, ()> {
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
