use crate::AcquireError;
use docent_core::recipe::{Hold, refuse_contenders};
use docent_core::{Client, Error, ErrorKind, Node};
use futures_util::future::join;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Children that a semaphore's node has itself: `locks` and `leases`.
const FOLDERS: usize = 2;

/// The node of a semaphore, at which a fixed limit is kept, in kazoo's format, to be compared with others'.
/// Curator keeps nothing there.
#[derive(Debug, Clone)]
pub(crate) struct SemaphoreNode {
    client: Client,
    path: String,
    /// The limit, where it is a fixed one.
    limit: Option<u32>,
    /// False when limits and kinds are not looked at.
    checks: bool,
    /// Set once a look found nothing against it.
    looked: Arc<AtomicBool>,
}

impl SemaphoreNode {
    pub(crate) fn new(client: &Client, path: &str, limit: Option<u32>, checks: bool) -> Self {
        Self { client: client.clone(), path: path.to_owned(), limit, checks, looked: Arc::default() }
    }

    /// Looks whether others use the path in another way, before anything is made. Once that was not so the
    /// looks in one's turn do: [`settle`](Self::settle).
    ///
    /// # Errors
    /// `InvalidInput` when others have another limit, `MixedKinds`.
    pub(crate) async fn look(&self) -> Result<(), Error> {
        if !self.checks || self.looked.load(Ordering::Relaxed) {
            return Ok(());
        }
        let (node, others) = join(self.read(), self.refuse_others()).await;
        others?;
        if let Some(node) = node? {
            self.is_compared(&node)?;
        }
        self.looked.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// The node; `None` when there is none, or it is of no interest.
    pub(crate) async fn read(&self) -> Result<Option<Node>, Error> {
        if !self.checks {
            return Ok(None);
        }
        match self.client.get(&self.path).await {
            Ok(node) => Ok(Some(node)),
            Err(error) if error.kind() == ErrorKind::NoNode => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Compares the limit in the node, as read after the tickets for permits were taken, or keeps it there.
    /// Only who has the `turn` does: so of two limits one is there before the other is looked for. False when
    /// the turn is lost.
    ///
    /// # Errors
    /// As [`look`](Self::look).
    pub(crate) async fn settle(&self, mut node: Option<Node>, turn: &Hold) -> Result<bool, AcquireError> {
        if !self.checks {
            return Ok(true);
        }
        // The turn's own node is below it: without it the turn is lost.
        while let Some(found) = node {
            // A contender of another kind is no child of the two folders: it is seen here, or came later and
            // sees these.
            if found.stat.num_children > FOLDERS {
                self.refuse_others().await?;
            }
            if self.is_compared(&found)? {
                return Ok(true);
            }
            // With a check of the turn's node: late it is refused, or says the same (decision 11).
            let text = self.limit.map(|limit| limit.to_string()).unwrap_or_default();
            let keep = turn.transaction().set(&self.path, text, Some(found.stat.version));
            match keep.commit().await {
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

    /// True when the limit is the one at the node, or there is nothing to compare; false when none is kept
    /// there yet.
    fn is_compared(&self, node: &Node) -> Result<bool, Error> {
        let Some(limit) = self.limit.filter(|_| self.checks) else { return Ok(true) };
        if node.data.is_empty() {
            return Ok(false);
        }
        // Data that is no number is somebody else's.
        let kept = std::str::from_utf8(&node.data).ok().and_then(|text| text.parse::<u32>().ok());
        match kept {
            Some(kept) if kept != limit => {
                let path = &self.path;
                let detail =
                    format!("the semaphore's limit of {limit} must be {kept}, as others have it at {path:?}");
                Err(Error::invalid_input("acquire", detail))
            }
            _ => Ok(true),
        }
    }

    async fn refuse_others(&self) -> Result<(), Error> {
        match self.client.children(&self.path).await {
            Ok(children) => refuse_contenders(&self.path, "semaphore", &children.names),
            Err(error) if error.kind() == ErrorKind::NoNode => Ok(()),
            Err(error) => Err(error),
        }
    }
}
