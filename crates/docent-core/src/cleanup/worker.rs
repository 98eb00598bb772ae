use super::Job;
use super::doomed::{Delete, delete_doomed};
use super::lost_creates::look_for_lost;
use super::own::{delete_node, undo_create};
use super::undo::undo_exact;
use crate::core::Core;
use crate::exact;
use crate::telemetry;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

pub(crate) struct CleanupWorker {
    pub(super) queue: mpsc::UnboundedReceiver<Job>,
}

impl CleanupWorker {
    /// Runs until the client is closed.
    pub(crate) async fn run(mut self, core: Arc<Core>) {
        let mut open: FuturesUnordered<BoxFuture<'_, ()>> = FuturesUnordered::new();
        // Ends with the session at the latest, and nobody waits for it.
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
                Some(Job::Node { node, delete, done }) => open.push(
                    async move {
                        let left = delete_doomed(core, node, delete).await;
                        if let Some(done) = done {
                            let _ = done.send(left);
                        }
                    }
                    .boxed(),
                ),
                Some(Job::Later { node, delay }) => open.push(
                    async move {
                        tokio::select! {
                            () = tokio::time::sleep(delay) => {}
                            () = core.closing.cancelled() => {}
                        }
                        if node.is_still_to_go() {
                            let _ = delete_doomed(core, node, Delete::NotYet).await;
                        }
                    }
                    .boxed(),
                ),
                Some(Job::Exact { epoch, write, made }) => {
                    open.push(undo_exact(core, epoch, write, made).boxed());
                }
                Some(Job::Marker { epoch, path, reply, place }) => open.push(
                    async move {
                        let _ = delete_node(core, epoch, path, Some(reply)).await;
                        drop(place);
                    }
                    .boxed(),
                ),
                Some(Job::Trim(epoch)) => aside.push(exact::trim(epoch).boxed()),
                Some(Job::Lost { epoch, folder }) => aside.push(look_for_lost(core, epoch, folder).boxed()),
                Some(Job::Abandoned { epoch, farewell }) => open.push(
                    async move {
                        let say = async {
                            epoch.held.all_dropped().await;
                            // Nodes that the next session keeps, too, are replaced while this one lives: nobody sees them gone.
                            let replaced = core.kept.attempted(epoch.number + 1);
                            let _ = tokio::time::timeout(core.config.operation_timeout, replaced).await;
                            farewell.say(&core.ensemble).await;
                        };
                        tokio::select! {
                            () = say => {}
                            () = core.closing.cancelled() => {}
                        }
                    }
                    .boxed(),
                ),
                Some(Job::Create { epoch, prefix, reply }) => {
                    open.push(undo_create(core, epoch, prefix, reply).boxed());
                }
            }
        }
    }
}
