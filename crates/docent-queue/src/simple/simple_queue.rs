use super::known::{KnownItems, Listing};
use bytes::Bytes;
use docent_core::recipe::{InOperation, NodePath, debug_handle, if_exists};
use docent_core::{Client, CreateMode, Error, ErrorKind, Node, planted};
use futures_util::StreamExt;
use futures_util::future::{BoxFuture, try_join_all};
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Text before an item's number.
pub const PREFIX: &str = "qn-";
/// Bytes of a request other than the item's bytes and its path.
const FIELDS: usize = 1024;

/// Number of failed attempts after which the process checks how many items of a long queue are deleted.
const SKIP_AFTER: usize = 3;

/// The queue of ZooKeeper's documentation: nodes `qn-0000000000` that hold the bytes of an item and are taken
/// by deleting them. Curator's `SimpleDistributedQueue` and Docent share the items of one path.
///
/// # Guarantees
/// At most once: an item is deleted before it is returned, so it is lost if its consumer exits before it has
/// processed the item. Puts and takes of this type are exact: a lost reply neither duplicates nor loses an
/// item.
///
/// # Caveats
/// Every put wakes all waiting consumers, and each of them lists the queue. Items that are already in a
/// listing are taken without another one. The queue does not decode items: an item that its consumer cannot
/// decode is already deleted. There is no capacity, no counting of deliveries, and no dead letters. Curator's
/// own puts and takes may duplicate or lose an item if a reply is lost. [`Queue`](crate::Queue) has none of
/// these limitations in its native layout.
#[derive(Clone)]
pub struct SimpleQueue {
    client: Client,
    path: NodePath,
    /// Remaining items of the last listing.
    known: Arc<KnownItems>,
}

impl SimpleQueue {
    /// Creates a handle for the queue at `path`, which does not have to exist yet.
    ///
    /// # Errors
    /// `InvalidInput` if the path breaks a rule or is the root.
    pub fn new(client: &Client, path: &str) -> Result<Self, Error> {
        Ok(Self {
            client: client.clone(),
            path: NodePath::of_recipe(client, "queue", path)?,
            known: Arc::default(),
        })
    }

    /// Returns the path that was passed to the constructor.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Puts an item at the end, exactly once. For users of Curator: `offer`.
    ///
    /// # Errors
    /// `TooLarge`, `NoAuth`, `Timeout`, `Closed`; `OutcomeUnknown` if the client could not find out whether
    /// the item was put. `SequenceExhausted` if the path has used all its sequence numbers: delete the empty
    /// queue's node, and the numbers start at 0 again.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the item may have been put.
    pub fn put(&self, item: impl Into<Bytes>) -> BoxFuture<'static, Result<(), Error>> {
        let (queue, item) = (self.clone(), item.into());
        Box::pin(async move {
            let most = queue.client.max_request().saturating_sub(FIELDS + queue.path.len());
            if item.len() > most {
                return Err(Error::too_large("put", item.len(), most).at(&queue.path));
            }
            let path = NodePath::new("put", format!("{}/{PREFIX}", queue.path))?;
            loop {
                let put =
                    queue.client.transaction().create(&path, item.clone(), CreateMode::PersistentSequential);
                match put.commit_exactly().await {
                    Err(error) if error.kind() == ErrorKind::NoNode => {
                        queue.client.ensure_parent(&path).await.in_operation("put")?;
                    }
                    // The counter stays at its maximum: an item with the last number is still in the queue.
                    Err(error)
                        if error.kind() == ErrorKind::NodeExists && !planted!(CounterEndIsNodeExists) =>
                    {
                        let detail = format!("the servers' counter is at its end, {}", i32::MAX);
                        return Err(Error::sequence_exhausted("put", detail).at(&queue.path));
                    }
                    result => return result.map(drop).in_operation("put"),
                }
            }
        })
    }

    /// Takes the first item, waiting as long as necessary.
    ///
    /// # Errors
    /// `NoAuth`, `Timeout`, `Closed`. `OutcomeUnknown` if an item was being deleted and the client could not
    /// find out whether the delete was applied: the item is still in the queue, or lost.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: an item may have been deleted. Use
    /// [`take_timeout`](Self::take_timeout) to stop waiting without this risk.
    pub fn take(&self) -> impl Future<Output = Result<Bytes, Error>> + Send + use<> {
        let queue = self.clone();
        async move {
            loop {
                if let Some(item) = queue.take_until(None).await.in_operation("take")? {
                    return Ok(item);
                }
            }
        }
    }

    /// Takes the first item like [`take`](Self::take), waiting for at most `timeout`. Returns `None` if there
    /// was no item. For users of Curator: `poll`.
    ///
    /// # Errors
    /// Those of [`take`](Self::take).
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: an item may have been deleted.
    pub fn take_timeout(
        &self,
        timeout: Duration,
    ) -> impl Future<Output = Result<Option<Bytes>, Error>> + Send + use<> {
        let queue = self.clone();
        async move { queue.take_until(Instant::now().checked_add(timeout)).await.in_operation("take") }
    }

    /// Takes the first item if there is one.
    ///
    /// # Errors
    /// Those of [`take`](Self::take).
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: an item may have been deleted.
    pub fn try_take(&self) -> impl Future<Output = Result<Option<Bytes>, Error>> + Send + use<> {
        let queue = self.clone();
        async move { queue.take_now().await.in_operation("take") }
    }

    /// Returns the first item, without removing it.
    ///
    /// # Errors
    /// `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn peek(&self) -> impl Future<Output = Result<Option<Bytes>, Error>> + Send + use<> {
        let queue = self.clone();
        async move {
            for name in queue.list().await.in_operation("peek")?.names {
                if let Some(node) = queue.read(&name).await.in_operation("peek")? {
                    return Ok(Some(node.data));
                }
            }
            Ok(None)
        }
    }

    /// Returns the number of items.
    ///
    /// # Errors
    /// `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn len(&self) -> impl Future<Output = Result<usize, Error>> + Send + use<> {
        let queue = self.clone();
        async move { Ok(queue.list().await.in_operation("len")?.names.len()) }
    }

    /// Returns whether the queue has no items.
    ///
    /// # Errors
    /// Those of [`len`](Self::len).
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn is_empty(&self) -> impl Future<Output = Result<bool, Error>> + Send + use<> {
        let queue = self.clone();
        async move { Ok(queue.len().await.in_operation("is_empty")? == 0) }
    }

    /// Takes the first item if there is one.
    async fn take_now(&self) -> Result<Option<Bytes>, Error> {
        if let Some(item) = self.take_known_unless_due().await? {
            return Ok(Some(item));
        }
        self.known.fill(self.list().await?);
        self.take_known(true).await
    }

    /// Only the wait is bounded by the deadline: an item that is being deleted is still returned.
    async fn take_until(&self, deadline: Option<Instant>) -> Result<Option<Bytes>, Error> {
        if let Some(item) = self.take_known_unless_due().await? {
            return Ok(Some(item));
        }
        // Each listing of the stream was requested after the previous one was yielded.
        let mut requested_after = self.known.taken();
        let mut folder = self.client.watch_children(&self.path)?;
        loop {
            let listed = tokio::select! {
                biased;
                listed = folder.next() => Some(listed),
                () = self.known.returned() => None,
                () = sleep_until(deadline) => return Ok(None),
            };
            match listed {
                Some(Some(listed)) => {
                    self.known.fill(Listing::new(listed?, requested_after));
                    requested_after = self.known.taken();
                }
                // The stream ends when the client is closed; this request returns the matching error.
                Some(None) => self.known.fill(self.list().await?),
                None => {}
            }
            if let Some(item) = self.take_known(true).await? {
                return Ok(Some(item));
            }
        }
    }

    /// Takes the first known item that still exists, without a listing.
    async fn take_known_unless_due(&self) -> Result<Option<Bytes>, Error> {
        if self.known.is_due() {
            return Ok(None);
        }
        if self.known.is_contended() {
            self.skip_taken().await?;
        }
        self.take_known(false).await
    }

    /// Takes the first known item that still exists. If the items were just `listed`, tries all of them.
    async fn take_known(&self, listed: bool) -> Result<Option<Bytes>, Error> {
        let mut in_vain = 0;
        while let Some(candidate) = self.known.first() {
            if let Some(item) = self.take_one(candidate.name()).await? {
                candidate.taken();
                return Ok(Some(item));
            }
            if candidate.missed() && !listed {
                break;
            }
            in_vain += 1;
            if in_vain % SKIP_AFTER == 0 {
                self.skip_taken().await?;
            }
        }
        Ok(None)
    }

    /// Takes an item. Returns `None` if it was deleted.
    async fn take_one(&self, name: &str) -> Result<Option<Bytes>, Error> {
        while let Some(node) = self.read(name).await? {
            let delete = self.client.transaction().delete(&self.item(name), node.stat.version);
            // An exact write: after a lost reply it must be certain whether this consumer took the item
            // (decision 11).
            match delete.commit_exactly().await {
                Ok(_) => return Ok(Some(node.data)),
                Err(error) if error.kind() == ErrorKind::NoNode => break,
                // The item's data was changed meanwhile. It is read again, because the returned data must be
                // the deleted data.
                Err(error) if error.kind() == ErrorKind::BadVersion => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Finds out how many of the first items of a long queue other consumers have taken.
    async fn skip_taken(&self) -> Result<(), Error> {
        let marks = self.known.marks();
        let checks = marks.iter().map(|name| async { self.client.exists(&self.item(name)).await });
        let stats = try_join_all(checks).await?;
        let deleted: Vec<_> = stats.into_iter().map(|item| item.is_none()).collect();
        self.known.forget_deleted(&marks, &deleted);
        Ok(())
    }

    fn item(&self, name: &str) -> String {
        format!("{}/{name}", self.path)
    }

    async fn list(&self) -> Result<Listing, Error> {
        let requested_after = self.known.taken();
        Ok(Listing::new(if_exists(self.client.children(&self.path).await)?, requested_after))
    }

    async fn read(&self, name: &str) -> Result<Option<Node>, Error> {
        if_exists(self.client.get(&self.item(name)).await)
    }
}

/// Returns the items ordered by name and not by number, as other clients of such queues do.
pub(super) fn in_order(mut names: Vec<String>) -> Vec<String> {
    names.retain(|name| name.starts_with(PREFIX));
    names.sort_unstable();
    names
}

impl fmt::Debug for SimpleQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_handle(f, "SimpleQueue", self.path(), &self.client).finish_non_exhaustive()
    }
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
