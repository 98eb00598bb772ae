use crate::AcquireError;
use docent_core::recipe::{Hold, if_exists, refuse_contenders};
use docent_core::{Client, Error, ErrorKind, Node};
use futures_util::future::join;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Number of children that belong to a semaphore's own node: `locks` and `leases`.
const FOLDERS: usize = 2;

/// The node of a semaphore. A fixed limit is stored there, in kazoo's format, to be compared with the limits
/// of other clients. Curator stores nothing there.
#[derive(Debug, Clone)]
pub(crate) struct SemaphoreNode {
    client: Client,
    path: String,
    /// Fixed limit, if the semaphore has one.
    limit: Option<u32>,
    /// Whether limits and kinds of contenders are checked.
    checks: bool,
    /// Set once a check succeeded.
    checked: Arc<AtomicBool>,
}

impl SemaphoreNode {
    pub(crate) fn new(client: &Client, path: &str, limit: Option<u32>, checks: bool) -> Self {
        Self { client: client.clone(), path: path.to_owned(), limit, checks, checked: Arc::default() }
    }

    /// Checks whether other clients use the path in another way, before any node is created. After the first
    /// success, only the checks in this client's turn are made: [`settle`](Self::settle).
    ///
    /// # Errors
    /// `InvalidInput` if other clients have another limit, `MixedKinds`.
    pub(crate) async fn check_use(&self) -> Result<(), Error> {
        if !self.checks || self.checked.load(Ordering::Relaxed) {
            return Ok(());
        }
        let (node, contenders) = join(self.read(), self.refuse_other_kinds()).await;
        contenders?;
        if let Some(node) = node? {
            self.matches_limit(&node)?;
        }
        self.checked.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Returns the node, or `None` if it does not exist or checks are disabled.
    pub(crate) async fn read(&self) -> Result<Option<Node>, Error> {
        if !self.checks {
            return Ok(None);
        }
        if_exists(self.client.get(&self.path).await)
    }

    /// Compares the limit with the limit in the node, which was read after the tickets for permits were
    /// taken, or stores it there. Only the client that has the `turn` does this, so of two different limits
    /// one is stored before the other is compared. Returns false if the turn is lost.
    ///
    /// # Errors
    /// Those of [`check_use`](Self::check_use).
    pub(crate) async fn settle(&self, mut node: Option<Node>, turn: &Hold) -> Result<bool, AcquireError> {
        if !self.checks {
            return Ok(true);
        }
        // The turn's own node is below the semaphore's node. If the semaphore's node is missing, the turn is
        // lost.
        while let Some(found) = node {
            // A contender of another kind is not a child of the two folders. Either it is found here, or it
            // arrived later and finds these folders.
            if found.stat.num_children > FOLDERS {
                self.refuse_other_kinds().await?;
            }
            if self.matches_limit(&found)? {
                return Ok(true);
            }
            // The transaction checks the turn's node, so a late write is refused, or writes the same limit
            // (decision 11).
            let text = self.limit.map(|limit| limit.to_string()).unwrap_or_default();
            let store = turn.transaction().set(&self.path, text, Some(found.stat.version));
            match store.commit().await {
                Ok(_) => return Ok(true),
                Err(error) if error.is_lost() => return Ok(false),
                Err(error) => match error.kind() {
                    ErrorKind::BadVersion | ErrorKind::NoNode | ErrorKind::OutcomeUnknown => {}
                    _ => return Err(error.into()),
                },
            }
            node = self.read().await?;
        }
        Ok(false)
    }

    /// Returns true if the limit equals the limit in the node or there is nothing to compare, and false if no
    /// limit is stored there yet.
    fn matches_limit(&self, node: &Node) -> Result<bool, Error> {
        let Some(limit) = self.limit.filter(|_| self.checks) else { return Ok(true) };
        if node.data.is_empty() {
            return Ok(false);
        }
        // Data that is not a number belongs to another program.
        let stored = std::str::from_utf8(&node.data).ok().and_then(|text| text.parse::<u32>().ok());
        match stored {
            Some(stored) if stored != limit => {
                let path = &self.path;
                let detail =
                    format!("the semaphore's limit {limit} must be {stored}, the limit stored at {path:?}");
                Err(Error::invalid_input("acquire", detail))
            }
            _ => Ok(true),
        }
    }

    async fn refuse_other_kinds(&self) -> Result<(), Error> {
        match if_exists(self.client.children(&self.path).await)? {
            Some(children) => refuse_contenders(&self.path, "semaphore", &children.names),
            None => Ok(()),
        }
    }
}
