use super::{Desired, KeptStatus};
use crate::error::{Error, ErrorKind};
use crate::node::CreateMode;
use futures_util::future::join_all;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// The kept nodes of a client: at most one for a path.
#[derive(Debug, Default)]
pub(crate) struct KeptTable {
    nodes: Mutex<HashMap<String, Entry>>,
    /// Number of successors that ever came, of all nodes.
    successors: watch::Sender<u64>,
}

/// Entry of a node in the table.
#[derive(Debug)]
struct Entry {
    /// Number of the last generation in which an attempt was made.
    attempted: watch::Receiver<u64>,
    /// Number of the generation in which the node is present; 0 for none.
    present: watch::Receiver<u64>,
    drained: watch::Receiver<Option<Drained>>,
    wanted: watch::Receiver<Desired>,
    /// Handle that wants the node from now on: the task at the path, which was told to remove it, has not
    /// seen that yet.
    successor: Option<TaskEnd>,
}

/// End of a kept node that belongs to its task.
#[derive(Debug)]
pub(crate) struct TaskEnd {
    pub(crate) wanted: watch::Receiver<Desired>,
    pub(crate) status: watch::Sender<KeptStatus>,
    pub(crate) progress: Progress,
}

/// Channels by which the task of a node tells its progress.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    pub(crate) attempted: watch::Sender<u64>,
    pub(crate) present: watch::Sender<u64>,
    /// Number of the last wish that was fulfilled.
    pub(crate) fulfilled: watch::Sender<u64>,
    /// Number of the last wish that failed; the highest number once the client is closed. Changed before the
    /// status is.
    pub(crate) refused: watch::Sender<u64>,
    /// Result of the drain of the client's shutdown; `None` before it is known.
    pub(crate) drained: watch::Sender<Option<Drained>>,
}

/// Result of the drain of a kept node: whether its readers can have heard that it leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Drained {
    /// It is there with its last words, or as it was wanted after they were withdrawn.
    Said,
    /// Nobody hears of it at this path: the servers refuse it, somebody else's node is there, or it shall be
    /// gone.
    Unsaid,
}

impl TaskEnd {
    pub(crate) fn new(wanted: watch::Receiver<Desired>) -> Self {
        Self { wanted, status: watch::Sender::new(KeptStatus::Pending), progress: Progress::default() }
    }
}

impl Entry {
    fn new(end: &TaskEnd) -> Self {
        let Progress { attempted, present, drained, .. } = &end.progress;
        Self {
            attempted: attempted.subscribe(),
            present: present.subscribe(),
            drained: drained.subscribe(),
            wanted: end.wanted.clone(),
            successor: None,
        }
    }

    /// True for a node that goes with its session.
    fn is_ephemeral(&self) -> bool {
        self.wanted.borrow().mode == CreateMode::Ephemeral
    }

    /// True when the node shall be removed: its handle says so, or was dropped.
    fn is_leaving(&self) -> bool {
        self.wanted.has_changed().is_err() || self.wanted.borrow().data.is_none()
    }
}

impl KeptTable {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Entry>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters a node.
    pub(crate) fn enter(&self, full: &str, end: &TaskEnd) -> Result<(), Error> {
        let mut table = self.lock();
        if table.contains_key(full) {
            return Err(Error::new(ErrorKind::AlreadyRegistered, "create"));
        }
        table.insert(full.to_owned(), Entry::new(end));
        Ok(())
    }

    /// Enters a node, also in the place of one that is leaving: then the task of that one goes on for it.
    /// Else its end comes back, for a task of its own.
    pub(crate) fn inherit(&self, full: &str, end: TaskEnd) -> Result<Option<TaskEnd>, Error> {
        let mut table = self.lock();
        let Some(entry) = table.get_mut(full) else {
            table.insert(full.to_owned(), Entry::new(&end));
            return Ok(Some(end));
        };
        // A node of another mode must be gone first.
        if !entry.is_leaving() || entry.wanted.borrow().mode != end.wanted.borrow().mode {
            return Err(Error::new(ErrorKind::AlreadyRegistered, "create"));
        }
        let passed_over = entry.successor.take();
        *entry = Entry::new(&end);
        entry.successor = Some(end);
        self.successors.send_modify(|successors| *successors += 1);
        if let Some(TaskEnd { status, .. }) = passed_over {
            status.send_replace(KeptStatus::Removed);
        }
        Ok(None)
    }

    /// Takes the successor of the node at a path: the handle that wants it in place of the one that its task
    /// serves.
    pub(crate) fn successor(&self, full: &str) -> Option<TaskEnd> {
        self.lock().get_mut(full)?.successor.take()
    }

    pub(crate) fn has_successor(&self, full: &str) -> bool {
        self.lock().get(full).is_some_and(|entry| entry.successor.is_some())
    }

    /// Tells of each new successor.
    pub(crate) fn successors(&self) -> watch::Receiver<u64> {
        self.successors.subscribe()
    }

    /// Takes a node out of the table, unless it has a successor, which is returned.
    pub(crate) fn leave(&self, full: &str) -> Option<TaskEnd> {
        let mut table = self.lock();
        let successor = table.get_mut(full).and_then(|entry| entry.successor.take());
        if successor.is_none() {
            table.remove(full);
        }
        successor
    }

    /// Waits until a node that is leaving has left; returns at once for one that stays.
    pub(crate) async fn vacated(&self, full: &str) {
        let leaving =
            self.lock().get(full).filter(|entry| entry.is_leaving()).map(|entry| entry.attempted.clone());
        if let Some(mut attempted) = leaving {
            // The task of the node has left the table when it drops its end.
            while attempted.changed().await.is_ok() {}
        }
    }

    /// Paths at which no node is known to be present in `generation`.
    pub(crate) fn missing(&self, generation: u64) -> Vec<String> {
        let table = self.lock();
        let missing = table.iter().filter(|(_, node)| *node.present.borrow() != generation);
        missing.map(|(path, _)| path.clone()).collect()
    }

    /// The full path and the kind of each node that goes with its session.
    pub(crate) fn ephemeral(&self) -> Vec<(String, &'static str)> {
        let table = self.lock();
        let ephemeral = table.iter().filter(|(_, entry)| entry.is_ephemeral());
        ephemeral.map(|(path, entry)| (path.clone(), entry.wanted.borrow().kind)).collect()
    }

    /// True when some node has last words to say.
    pub(crate) fn has_farewells(&self) -> bool {
        self.lock().values().any(|entry| entry.wanted.borrow().farewell.is_some())
    }

    /// Waits until each node that has last words has said them, cannot say them, or has left. Returns the
    /// longest time that readers of those get which were written.
    pub(crate) async fn farewells_said(&self) -> Duration {
        let said: Vec<_> = self
            .lock()
            .values()
            .filter_map(|entry| {
                let period = entry.wanted.borrow().farewell.as_ref()?.period;
                Some((entry.drained.clone(), period))
            })
            .collect();
        let said = join_all(said.into_iter().map(|(mut drained, period)| async move {
            // An error means that the node left before it could say anything.
            let drained = drained.wait_for(Option::is_some).await;
            let is_said = drained.is_ok_and(|drained| *drained == Some(Drained::Said));
            if is_said { period } else { Duration::ZERO }
        }));
        said.await.into_iter().max().unwrap_or_default()
    }

    /// Waits until each node that goes with its session has left.
    pub(crate) async fn ephemeral_left(&self) {
        let nodes: Vec<_> = self
            .lock()
            .values()
            .filter(|entry| entry.is_ephemeral())
            .map(|entry| entry.attempted.clone())
            .collect();
        join_all(nodes.into_iter().map(|mut attempted| async move {
            // The task of the node has left the table when it drops its end.
            while attempted.changed().await.is_ok() {}
        }))
        .await;
    }

    /// Waits until an attempt at each node was made in `generation`.
    pub(crate) async fn attempted(&self, generation: u64) {
        let nodes: Vec<_> = self.lock().values().map(|entry| entry.attempted.clone()).collect();
        join_all(nodes.into_iter().map(|mut attempted| async move {
            // An error means that the node was given up meanwhile: it needs no attempt.
            let _ = attempted.wait_for(|number| *number >= generation).await;
        }))
        .await;
    }
}
