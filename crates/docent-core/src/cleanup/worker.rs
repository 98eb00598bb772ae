use super::Job;
use super::doomed::{Delete, delete_doomed};
use super::lost_creates::look_for_lost;
use super::own::{delete_node, undo_create};
use super::undo::{undo_exact, undo_numbered};
use crate::client::core::Core;
use crate::operation::exact;
use crate::telemetry;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

pub(crate) struct CleanupWorker {
    pub(super) queue: mpsc::UnboundedReceiver<Job>,
}

impl CleanupWorker {
    /// Runs until the client is closed.
    pub(crate) async fn run(mut self, core: Arc<Core>) {
        let mut open: FuturesUnordered<BoxFuture<'_, ()>> = FuturesUnordered::new();
        // Jobs that end with the session at the latest, and that nobody waits for.
        let mut aside: FuturesUnordered<BoxFuture<'_, ()>> = FuturesUnordered::new();
        let mut waiting: Vec<oneshot::Sender<()>> = Vec::new();
        loop {
            telemetry::cleanups(open.len());
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
                () = core.finished.cancelled() => return,
            };
            let core = core.as_ref();
            match job {
                None => return,
                Some(Job::Drained(done)) => waiting.push(done),
                Some(Job::Node { node, delete, done }) => open.push(guarded(async move {
                    let left = delete_doomed(core, node, delete).await;
                    if let Some(done) = done {
                        let _ = done.send(left);
                    }
                })),
                Some(Job::Later { node, delay }) => open.push(guarded(async move {
                    tokio::select! {
                        () = tokio::time::sleep(delay) => {}
                        () = core.closing.cancelled() => {}
                    }
                    if node.is_still_to_go() {
                        let _ = delete_doomed(core, node, Delete::NotYet).await;
                    }
                })),
                Some(Job::Exact { generation, write, made }) => {
                    open.push(guarded(undo_exact(core, generation, write, made)));
                }
                Some(Job::Marker { generation, path, reply, place }) => open.push(guarded(async move {
                    let _ = delete_node(core, generation, path, Some(reply)).await;
                    drop(place);
                })),
                Some(Job::Trim(generation)) => aside.push(guarded(exact::trim(generation))),
                Some(Job::Lost { generation, folder }) => {
                    aside.push(guarded(look_for_lost(core, generation, folder)));
                }
                Some(Job::Abandoned { generation, farewell }) => open.push(guarded(async move {
                    let say = async {
                        // The end of the session gives the places of its guards to others: until they are
                        // dropped their work may be stopping.
                        generation.held.all_dropped().await;
                        // Kept nodes of this session are replaced by the next one while this one lives, so
                        // that nobody sees them gone (decision 7).
                        let replaced = core.kept.attempted(generation.number + 1);
                        let _ = tokio::time::timeout(core.config.operation_timeout, replaced).await;
                        farewell.say(&core.ensemble).await;
                    };
                    tokio::select! {
                        () = say => {}
                        () = core.closing.cancelled() => {}
                    }
                })),
                Some(Job::Create { generation, prefix, reply, place }) => open.push(guarded(async move {
                    undo_create(core, generation, prefix, reply).await;
                    drop(place);
                })),
                Some(Job::Numbered { generation, prefix, czxid }) => {
                    aside.push(guarded(undo_numbered(core, generation, prefix, czxid)));
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
