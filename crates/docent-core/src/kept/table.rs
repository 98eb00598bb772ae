use crate::core::Core;
use crate::error::{Error, ErrorKind};
use futures_util::future::join_all;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// The kept nodes of a client: at most one for a path.
#[derive(Debug, Default)]
pub(crate) struct KeptTable(Mutex<HashMap<String, watch::Receiver<u64>>>);

impl KeptTable {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, watch::Receiver<u64>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters a node. Returns where its task says in which epoch it has made an attempt.
    pub(super) fn enter(&self, full: &str) -> Result<watch::Sender<u64>, Error> {
        let mut table = self.lock();
        if table.contains_key(full) {
            return Err(Error::new(ErrorKind::AlreadyRegistered, "keep"));
        }
        let (attempted, receiver) = watch::channel(0);
        table.insert(full.to_owned(), receiver);
        Ok(attempted)
    }

    pub(super) fn leave(&self, full: &str) {
        self.lock().remove(full);
    }

    /// Waits until an attempt at each node was made in `epoch`.
    pub(crate) async fn attempted(&self, epoch: u64) {
        let nodes: Vec<_> = self.lock().values().cloned().collect();
        join_all(nodes.into_iter().map(|mut attempted| async move {
            // A node that is given up meanwhile needs no attempt.
            let _ = attempted.wait_for(|number| *number >= epoch).await;
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
