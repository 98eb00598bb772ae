use crate::core::Core;
use crate::error::{Error, ErrorKind};
use futures_util::future::join_all;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// The kept nodes of a client: at most one for a path.
#[derive(Debug, Default)]
pub(crate) struct KeptTable(Mutex<HashMap<String, Entry>>);

/// What the table knows of a node.
#[derive(Debug, Clone)]
struct Entry {
    /// The last epoch in which an attempt was made.
    attempted: watch::Receiver<u64>,
    /// The epoch in which the node is present; 0 for none.
    present: watch::Receiver<u64>,
}

/// Where the task of a node says how it stands.
#[derive(Debug)]
pub(super) struct Progress {
    pub(super) attempted: watch::Sender<u64>,
    pub(super) present: watch::Sender<u64>,
}

impl KeptTable {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters a node.
    pub(super) fn enter(&self, full: &str) -> Result<Progress, Error> {
        let mut table = self.lock();
        if table.contains_key(full) {
            return Err(Error::new(ErrorKind::AlreadyRegistered, "keep"));
        }
        let progress = Progress { attempted: watch::Sender::new(0), present: watch::Sender::new(0) };
        let (attempted, present) = (progress.attempted.subscribe(), progress.present.subscribe());
        table.insert(full.to_owned(), Entry { attempted, present });
        Ok(progress)
    }

    pub(super) fn leave(&self, full: &str) {
        self.lock().remove(full);
    }

    /// Paths at which no node is known to be present in `epoch`.
    pub(crate) fn missing(&self, epoch: u64) -> Vec<String> {
        let table = self.lock();
        let missing = table.iter().filter(|(_, node)| *node.present.borrow() != epoch);
        missing.map(|(path, _)| path.clone()).collect()
    }

    /// Waits until an attempt at each node was made in `epoch`.
    pub(crate) async fn attempted(&self, epoch: u64) {
        let nodes: Vec<_> = self.lock().values().cloned().collect();
        join_all(nodes.into_iter().map(|mut node| async move {
            // A node that is given up meanwhile needs no attempt.
            let _ = node.attempted.wait_for(|number| *number >= epoch).await;
        }))
        .await;
    }
}

/// Leaves the table when its task ends, however it does.
pub(super) struct Entered<'a> {
    pub(super) core: &'a Core,
    pub(super) full: &'a str,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.core.kept.leave(self.full);
    }
}
