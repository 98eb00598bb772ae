use super::Known;
use super::known::Listing;
use bytes::Bytes;
use docent_core::recipe::{NodePath, debug_handle};
use docent_core::{Client, CreateMode, Error, ErrorKind, Node, planted};
use futures_util::future::BoxFuture;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Text before an item's number.
pub const PREFIX: &str = "qn-";
/// Bytes of a request besides an item's bytes and its path.
const FIELDS: usize = 1024;

/// The queue of ZooKeeper's documentation: nodes `qn-0000000000` with the bytes of an item, taken by deleting
/// them. Curator's `SimpleDistributedQueue` and Docent share the items of one path.
///
/// # Guarantees
/// At most once: an item is deleted before it is returned, so that it is lost when its consumer dies before
/// it worked on it. Puts and takes of this class are exact: a lost reply neither doubles an item nor loses it
/// on the way.
///
/// # Caveats
/// Every item that is put wakes everybody who waits, and all of them list the queue; one listing is enough
/// for many takes of items that were there before. Items that nobody can read are in the way. There is no
/// capacity, no counting of deliveries, no dead letters. Curator's own puts and takes may double or lose an
/// item when a reply is lost. For all of that there is [`Queue`](crate::Queue).
#[derive(Clone)]
pub struct SimpleQueue {
    pub(super) client: Client,
    pub(super) path: NodePath,
    /// The items that are left of the last listing.
    pub(super) known: Arc<Known>,
}

impl SimpleQueue {
    /// The queue at `path`. It need not exist yet.
    ///
    /// # Errors
    /// `InvalidInput` when the path breaks a rule or is the root.
    pub fn new(client: &Client, path: &str) -> Result<Self, Error> {
        Ok(Self { client: client.clone(), path: NodePath::new("queue", path)?, known: Arc::default() })
    }

    /// The path, as it was given.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Puts an item at the end, exactly once. For users of Curator: `offer`.
    ///
    /// # Errors
    /// `TooLarge`, `NoAuth`, `Timeout`, `Closed`; `OutcomeUnknown` when it could not be found out whether it
    /// is there. `SequenceExhausted` when the path has given out all its numbers: delete the empty queue's
    /// node, and the numbers start at 0 again.
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
                        queue.client.ensure_parent(&path).await?;
                    }
                    // The counter sticks at its end: an item with the last number is still in the queue.
                    Err(error)
                        if error.kind() == ErrorKind::NodeExists && !planted!(CounterEndIsNodeExists) =>
                    {
                        let detail = format!("the servers' counter is at its end, {}", i32::MAX);
                        return Err(Error::sequence_exhausted("put", detail).at(&queue.path));
                    }
                    result => return result.map(drop),
                }
            }
        })
    }

    /// Takes the first item, and waits for one.
    ///
    /// # Errors
    /// `NoAuth`, `Timeout`, `Closed`. `OutcomeUnknown` when an item was being deleted and it could not be
    /// found out whether it is: then it is there still, or lost.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: an item may have been deleted. [`take_timeout`](Self::take_timeout)
    /// gives up without that.
    pub fn take(&self) -> impl Future<Output = Result<Bytes, Error>> + Send + use<> {
        let queue = self.clone();
        async move {
            loop {
                if let Some(item) = queue.take_by(None).await? {
                    return Ok(item);
                }
            }
        }
    }

    /// As [`take`](Self::take), but waits for an item at most for `timeout`; `None` when there was none. For
    /// users of Curator: `poll`.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    ///
    /// # Cancel safety
    /// As [`take`](Self::take).
    pub fn take_timeout(
        &self,
        timeout: Duration,
    ) -> impl Future<Output = Result<Option<Bytes>, Error>> + Send + use<> {
        let queue = self.clone();
        async move { queue.take_by(Instant::now().checked_add(timeout)).await }
    }

    /// Takes the first item if there is one.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    ///
    /// # Cancel safety
    /// As [`take`](Self::take).
    pub fn try_take(&self) -> impl Future<Output = Result<Option<Bytes>, Error>> + Send + use<> {
        let queue = self.clone();
        async move { queue.take_now().await }
    }

    /// The first item, which stays.
    ///
    /// # Errors
    /// `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn peek(&self) -> impl Future<Output = Result<Option<Bytes>, Error>> + Send + use<> {
        let queue = self.clone();
        async move {
            for name in queue.list().await?.names {
                if let Some(node) = queue.read(&name).await? {
                    return Ok(Some(node.data));
                }
            }
            Ok(None)
        }
    }

    /// Number of items.
    ///
    /// # Errors
    /// `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn len(&self) -> impl Future<Output = Result<usize, Error>> + Send + use<> {
        let queue = self.clone();
        async move { Ok(queue.list().await?.names.len()) }
    }

    /// True when there is none.
    ///
    /// # Errors
    /// As [`len`](Self::len).
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn is_empty(&self) -> impl Future<Output = Result<bool, Error>> + Send + use<> {
        let queue = self.clone();
        async move { Ok(queue.len().await? == 0) }
    }

    pub(super) fn item(&self, name: &str) -> String {
        format!("{}/{name}", self.path)
    }

    pub(super) async fn list(&self) -> Result<Listing, Error> {
        let asked = self.known.taken();
        Ok(Listing::new(present(self.client.children(&self.path).await)?, asked))
    }

    pub(super) async fn read(&self, name: &str) -> Result<Option<Node>, Error> {
        present(self.client.get(&self.item(name)).await)
    }
}

/// As others do it: by name, not by number.
pub(super) fn in_order(mut names: Vec<String>) -> Vec<String> {
    names.retain(|name| name.starts_with(PREFIX));
    names.sort_unstable();
    names
}

/// `None` for a missing node.
fn present<T>(result: Result<T, Error>) -> Result<Option<T>, Error> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == ErrorKind::NoNode => Ok(None),
        Err(error) => Err(error),
    }
}

impl fmt::Debug for SimpleQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_handle(f, "SimpleQueue", self.path(), &self.client).finish_non_exhaustive()
    }
}
