use super::{Desired, KeptStatus, Shown};
use crate::error::{Error, ErrorKind};
use crate::node::CreateMode;
use crate::operation::Shared;
use futures_util::future::join_all;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// The kept nodes of a client: at most one at each path.
#[derive(Debug, Default)]
pub(crate) struct KeptTable {
    nodes: Mutex<HashMap<String, Entry>>,
    /// Number of successors of all nodes so far.
    successors: watch::Sender<u64>,
}

/// Entry of a node in the table.
#[derive(Debug)]
struct Entry {
    progress: watch::Receiver<Progress>,
    wanted: watch::Receiver<Desired>,
    /// Handle that takes over the node: the task at the path was asked to remove it, but has not processed
    /// the takeover yet.
    successor: Option<TaskChannels>,
}

/// The task's end of a kept node's channels.
#[derive(Debug)]
pub(crate) struct TaskChannels {
    pub(crate) wanted: watch::Receiver<Desired>,
    pub(crate) status: watch::Sender<KeptStatus>,
    pub(crate) progress: watch::Sender<Progress>,
}

/// What the task of a node has done so far.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// Number of the last generation in which an attempt was made.
    pub(crate) attempted: u64,
    /// Number of the generation in which the node is present; 0 for none.
    pub(crate) present: u64,
    /// Number of the last request that was fulfilled. Changed after the status.
    pub(crate) fulfilled: u64,
    /// Number of the last request that failed; the highest number once the client is closed. Changed after
    /// the status.
    pub(crate) refused: u64,
    /// Result of the drain of the client's shutdown; `None` before it is known.
    pub(crate) drained: Option<Drained>,
    /// What other clients have chosen. Changed before the status.
    pub(crate) shown: Shown,
}

/// Result of the drain of a kept node: whether readers can have seen that the node leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Drained {
    /// The node exists with its final data, or as wanted after the final data was withdrawn.
    Published,
    /// Readers of the path cannot see it: the servers refuse the write, another client's node is at the path,
    /// or the node is to be removed.
    Unpublished,
}

impl TaskChannels {
    pub(crate) fn new(wanted: watch::Receiver<Desired>) -> Self {
        Self { wanted, status: watch::Sender::new(KeptStatus::Pending), progress: watch::Sender::default() }
    }
}

impl Entry {
    fn new(channels: &TaskChannels) -> Self {
        let (progress, wanted) = (channels.progress.subscribe(), channels.wanted.clone());
        Self { progress, wanted, successor: None }
    }

    /// Returns true for a node that is deleted with its session.
    fn is_ephemeral(&self) -> bool {
        self.wanted.borrow().mode == CreateMode::Ephemeral
    }

    /// Returns the time for which the node's final data is shown before its removal, if it is not shown
    /// already.
    fn drain_period(&self) -> Option<Duration> {
        if self.progress.borrow().shown == Shown::FinalData {
            return None;
        }
        let period = self.wanted.borrow().final_data.as_ref()?.period;
        (!period.is_zero()).then_some(period)
    }

    /// Returns true if the node is to be removed: its handle requested removal, or was dropped.
    fn is_leaving(&self) -> bool {
        self.wanted.has_changed().is_err() || self.wanted.borrow().data.is_none()
    }
}

impl KeptTable {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Entry>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters a node, and returns `channels` for its task. If the caller `takes_over` the place of a node
    /// that is leaving, the task of that node continues for the new handle, and no channels are returned.
    pub(crate) fn enter(
        &self,
        full: &str,
        channels: TaskChannels,
        takes_over: bool,
    ) -> Result<Option<TaskChannels>, Error> {
        let mut table = self.lock();
        let Some(entry) = table.get_mut(full) else {
            table.insert(full.to_owned(), Entry::new(&channels));
            return Ok(Some(channels));
        };
        // A node of another mode must be deleted first.
        let is_same_mode = entry.wanted.borrow().mode == channels.wanted.borrow().mode;
        if !takes_over || !entry.is_leaving() || !is_same_mode {
            return Err(Error::new(ErrorKind::AlreadyRegistered, "create"));
        }
        let replaced = entry.successor.take();
        *entry = Entry::new(&channels);
        entry.successor = Some(channels);
        self.successors.send_modify(|successors| *successors += 1);
        if let Some(TaskChannels { status, .. }) = replaced {
            status.send_replace(KeptStatus::Removed);
        }
        Ok(None)
    }

    /// Takes the successor of the node at a path: the handle that replaces the one which the task serves.
    pub(crate) fn successor(&self, full: &str) -> Option<TaskChannels> {
        self.lock().get_mut(full)?.successor.take()
    }

    pub(crate) fn has_successor(&self, full: &str) -> bool {
        self.lock().get(full).is_some_and(|entry| entry.successor.is_some())
    }

    /// Returns a receiver that is notified of each new successor.
    pub(crate) fn successors(&self) -> watch::Receiver<u64> {
        self.successors.subscribe()
    }

    /// Removes a node from the table, unless it has a successor, which is returned.
    pub(crate) fn leave(&self, full: &str) -> Option<TaskChannels> {
        let mut table = self.lock();
        let successor = table.get_mut(full).and_then(|entry| entry.successor.take());
        if successor.is_none() {
            table.remove(full);
        }
        successor
    }

    /// Waits until a leaving node has left; returns immediately if the node is not leaving.
    pub(crate) async fn vacated(&self, full: &str) {
        let leaving = self.lock().get(full).filter(|entry| entry.is_leaving()).map(progress);
        if let Some(progress) = leaving {
            left(progress).await;
        }
    }

    /// Paths at which no node is known to be present in `generation`, but should be.
    pub(crate) fn missing(&self, generation: u64) -> Vec<String> {
        let table = self.lock();
        let missing = table.iter().filter(|(_, node)| node.progress.borrow().present != generation);
        let missing = missing.filter(|(_, node)| node.wanted.borrow().base.is_none());
        missing.map(|(path, _)| path.clone()).collect()
    }

    /// The full path and the label of each node that is deleted with its session.
    pub(crate) fn ephemeral(&self) -> Vec<(String, &'static str)> {
        let table = self.lock();
        let ephemeral = table.iter().filter(|(_, entry)| entry.is_ephemeral());
        ephemeral.map(|(path, entry)| (path.clone(), entry.wanted.borrow().kind)).collect()
    }

    /// Returns true if any node has final data to write.
    pub(crate) fn has_final_data(&self) -> bool {
        self.lock().values().any(|entry| entry.drain_period().is_some())
    }

    /// Waits until each node with final data has written it, cannot write it, or has left. Returns the
    /// longest period among those that were written.
    pub(crate) async fn final_data_published(&self) -> Duration {
        let published: Vec<_> = self
            .lock()
            .values()
            .filter_map(|entry| Some((entry.progress.clone(), entry.drain_period()?)))
            .collect();
        let published = join_all(published.into_iter().map(|(mut progress, period)| async move {
            // An error means that the node left before it could write its final data.
            let drained = progress.wait_for(|progress| progress.drained.is_some()).await;
            let is_published = drained.is_ok_and(|progress| progress.drained == Some(Drained::Published));
            if is_published { period } else { Duration::ZERO }
        }));
        published.await.into_iter().max().unwrap_or_default()
    }

    /// Waits until each node that is deleted with its session has left.
    pub(crate) async fn ephemeral_removed(&self) {
        let nodes: Vec<_> = self.lock().values().filter(|entry| entry.is_ephemeral()).map(progress).collect();
        join_all(nodes.into_iter().map(left)).await;
    }

    /// Waits until an attempt was made at each node in `generation`.
    pub(crate) async fn attempted(&self, generation: u64) {
        let nodes: Vec<_> = self.lock().values().map(progress).collect();
        join_all(nodes.into_iter().map(|mut progress| async move {
            // An error means that the node was given up in the meantime and needs no attempt.
            let _ = progress.wait_for(|progress| progress.attempted >= generation).await;
        }))
        .await;
    }
}

fn progress(entry: &Entry) -> watch::Receiver<Progress> {
    entry.progress.clone()
}

/// Waits until the task of a node has left the table: it drops its end of the channel after that.
async fn left(mut progress: watch::Receiver<Progress>) {
    while progress.changed().await.is_ok() {}
}

/// Entry of a task in the table. The task leaves the table when it ends, even by a panic.
pub(crate) struct TableEntry {
    shared: Arc<Shared>,
    full: String,
    left: bool,
}

impl TableEntry {
    pub(crate) fn new(shared: &Arc<Shared>, full: &str) -> Self {
        Self { shared: Arc::clone(shared), full: full.to_owned(), left: false }
    }

    /// Leaves the table, unless there is a successor, which is returned.
    pub(crate) fn leave(&mut self) -> Option<TaskChannels> {
        let successor = self.shared.kept.leave(&self.full);
        self.left = successor.is_none();
        successor
    }
}

impl Drop for TableEntry {
    fn drop(&mut self) {
        while !self.left {
            // No task remains that could serve a successor.
            drop(self.leave());
        }
    }
}
