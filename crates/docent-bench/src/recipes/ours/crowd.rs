use super::series::Measured;
use crate::recipes::order::{Answer, Order};
use anyhow::Result;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::task::JoinSet;

/// Tasks that repeat an operation and count how often.
///
/// # On drop
///
/// The tasks are aborted.
#[derive(Debug, Default)]
pub(super) struct Crowd {
    done: Done,
    tasks: JoinSet<Result<()>>,
}

/// Number of operations that the tasks of a crowd have done.
#[derive(Debug, Clone, Default)]
pub(super) struct Done(Arc<AtomicU64>);

impl Done {
    pub(super) fn add(&self, count: usize) {
        self.0.fetch_add(count as u64, Ordering::Relaxed);
    }

    pub(super) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Crowd {
    /// Returns the counter for the tasks.
    pub(super) fn done(&self) -> Done {
        self.done.clone()
    }

    /// Adds a task, which runs until it fails or is aborted.
    pub(super) fn spawn(&mut self, task: impl Future<Output = Result<()>> + Send + 'static) {
        self.tasks.spawn(task);
    }

    /// Lets the tasks run for the lead time of the order, counts the operations within its window, and aborts
    /// the tasks.
    pub(super) async fn measure(mut self, order: &Order) -> Result<Answer> {
        tokio::time::sleep(order.millis("lead")).await;
        let (before, measured) = (self.done.count(), Measured::start());
        tokio::time::sleep(order.millis("window")).await;
        let answer = measured.stop(self.done.count() - before).await;
        while let Some(ended) = self.tasks.try_join_next() {
            ended??;
        }
        self.tasks.shutdown().await;
        Ok(answer)
    }

    /// Waits for `end`, and then aborts the tasks. If a task fails earlier, this returns its error.
    pub(super) async fn until<T>(mut self, end: impl Future<Output = T>) -> Result<T> {
        let mut end = pin!(end);
        loop {
            tokio::select! {
                biased;
                ended = &mut end => {
                    self.tasks.shutdown().await;
                    return Ok(ended);
                }
                Some(ended) = self.tasks.join_next() => ended??,
            }
        }
    }
}
