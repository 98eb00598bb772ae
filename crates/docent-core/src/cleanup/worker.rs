use super::by_name::{delete_node, undo_create};
use super::deletion::{Delete, delete};
use super::lost_creates::look_for_lost;
use super::markers::trim;
use super::undo::{undo_exact, undo_numbered};
use super::{DeleteOutcome, Host, Job};
use crate::telemetry;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

pub(crate) struct CleanupWorker {
    pub(super) queue: mpsc::UnboundedReceiver<Box<Job>>,
}

impl CleanupWorker {
    /// Runs until the client is closed.
    pub(crate) async fn run(mut self, host: Arc<dyn Host>) {
        let mut open: FuturesUnordered<BoxFuture<'_, ()>> = FuturesUnordered::new();
        // Jobs that end with the session at the latest, and that nobody waits for.
        let mut aside: FuturesUnordered<BoxFuture<'_, ()>> = FuturesUnordered::new();
        let mut waiting: Vec<oneshot::Sender<()>> = Vec::new();
        loop {
            telemetry::cleanups(&host.setup().label, open.len());
            if open.is_empty() {
                for drained in waiting.drain(..) {
                    let _ = drained.send(());
                }
            }
            let job = tokio::select! {
                biased;
                Some(()) = open.next() => continue,
                Some(()) = aside.next() => continue,
                job = self.queue.recv() => job,
                () = host.setup().finished.cancelled() => return,
            };
            let host = host.as_ref();
            match job.map(|job| *job) {
                None => return,
                Some(Job::Drained(done)) => waiting.push(done),
                Some(Job::Node { node, delete: sent, done }) => open.push(guarded(async move {
                    let outcome = delete(host, &node, sent).await;
                    if let Some(done) = done {
                        let _ = done.send(outcome);
                    }
                })),
                Some(Job::Later { node, delay }) => open.push(guarded(async move {
                    tokio::select! {
                        () = tokio::time::sleep(delay) => {}
                        () = host.setup().closing.cancelled() => {}
                    }
                    if node.leave()
                        && let DeleteOutcome::Refused(_) = delete(host, &node, Delete::NotYet).await
                    {
                        node.stays();
                    }
                })),
                Some(Job::Exact { context, write, made }) => {
                    open.push(guarded(undo_exact(host, context, write, made)));
                }
                Some(Job::Marker { context, path, reply, place }) => open.push(guarded(async move {
                    let _ = delete_node(host, context, path, Some(reply)).await;
                    drop(place);
                })),
                Some(Job::Trim(context)) => aside.push(guarded(trim(context))),
                Some(Job::Lost { context, folder }) => {
                    aside.push(guarded(look_for_lost(host, context, folder)));
                }
                Some(Job::Abandoned { closer, after, ended }) => open.push(guarded(async move {
                    let end = async {
                        after.await;
                        closer.run(&host.setup().ensemble).await;
                        ended();
                    };
                    tokio::select! {
                        () = end => {}
                        () = host.setup().closing.cancelled() => {}
                    }
                })),
                Some(Job::Create { context, prefix, reply, place }) => open.push(guarded(async move {
                    undo_create(host, context, prefix, reply).await;
                    drop(place);
                })),
                Some(Job::Numbered { context, prefix, czxid }) => {
                    aside.push(guarded(undo_numbered(host, context, prefix, czxid)));
                }
            }
        }
    }
}

/// Keeps a panic in one job from ending all others.
fn guarded<'a>(job: impl Future<Output = ()> + Send + 'a) -> BoxFuture<'a, ()> {
    let caught = AssertUnwindSafe(job).catch_unwind();
    caught
        .map(|ended| {
            if ended.is_err() {
                tracing::error!("a cleanup panicked: its node goes with its session");
            }
        })
        .boxed()
}
