use super::TreeCacheBuilder;
use super::children::Handle;
use super::children_event::ChildrenEvents;
use super::keys::Keys;
use super::status;
use super::tree_event::TreeEvents;
use super::tree_options::TreeOptions;
use super::tree_snapshot::TreeSnapshot;
use crate::client::Client;
use crate::error::Error;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// A node with everything below it, kept in memory. For users of Curator: what `TreeCache` and `CuratorCache`
/// do.
///
/// Each node is read with a watch, and listed with another one, unless it is ephemeral or at the [greatest
/// depth](TreeCacheBuilder::max_depth); it is read again when one of them fires. The data of many nodes is
/// read by one request, and their watches are set afterwards, several by one request. Cheap to clone; all
/// clones are one cache with one task.
///
/// After a lost link, and in a new session, it reads everything again, after a random pause of up to a
/// millisecond for each node and a second at most, so that the caches of many clients do not all do so at
/// once. Until that is done it goes on to answer with what it knew, and [`is_stale`](Self::is_stale).
///
/// Watches are the one-shot watches that every server has, two for each node, or one [persistent
/// watch](crate::ClientBuilder::persistent_watches) for all. A [`ChildrenCache`](crate::ChildrenCache) is
/// cheaper where one folder is enough.
///
/// # Guarantees
/// The shown data of a node is never older than before, and the content comes to that of the servers. Values
/// in between may be left out. Nodes are read apart from each other: a snapshot is not one moment of the
/// servers. A node that cannot be read spoils no other. At most 64 requests of a cache are under way at a
/// time.
///
/// # Assumptions
/// A change of the access control list is not told by the servers: a node that nobody may read any more keeps
/// its last value. All of the data fits in memory, or the cache is built [without
/// it](TreeCacheBuilder::without_data). A folder's listing fits into one reply.
///
/// # On drop
/// When the last clone and the last subscriber are dropped its task ends and its watches are removed. It does
/// not keep the client open.
///
/// # Examples
/// ```no_run
/// # use docent_core::{Client, TreeCache, TreeEvent};
/// # use futures_util::StreamExt;
/// # async fn example(client: Client) -> Result<(), docent_core::Error> {
/// let shop = TreeCache::new(&client, "/shop")?;
/// shop.ready().await?;
/// for (path, node) in shop.current().descendants("/shop/eu") {
///     println!("{path}: {} bytes", node.data.len());
/// }
/// let mut events = shop.changes();
/// while let Some(event) = events.next().await {
///     match event? {
///         TreeEvent::Added(path, _) => println!("{path} is there"),
///         TreeEvent::Updated(path, node) => println!("{path} has version {}", node.stat.version),
///         TreeEvent::Delete(path) => println!("{path} is gone"),
///         _ => {}
///     }
/// }
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct TreeCache {
    handle: Arc<Handle>,
    operation_timeout: Duration,
}

impl TreeCache {
    /// Begins to keep `path` and everything below it. It need not exist yet.
    ///
    /// # Errors
    /// `InvalidInput` when the path breaks a rule, `Closed`.
    pub fn new(client: &Client, path: &str) -> Result<Self, Error> {
        Self::builder(client, path).build()
    }

    /// Prepares a cache with settings of its own.
    pub fn builder(client: &Client, path: impl Into<String>) -> TreeCacheBuilder {
        TreeCacheBuilder::new(client, path.into())
    }

    pub(super) fn start(client: &Client, path: String, options: TreeOptions) -> Result<Self, Error> {
        let shared = Arc::clone(client.shared());
        let full = shared.namespace.full("watch", &path)?;
        if shared.closing.is_cancelled() {
            return Err(Error::new(shared.closed(), "watch").at(&path));
        }
        let keys = Keys::paths(&path, full);
        let handle = Arc::new(Handle::start(shared, path, keys, options));
        Ok(Self { handle, operation_timeout: client.operation_timeout() })
    }

    /// The path, as it was given.
    pub fn path(&self) -> &str {
        &self.handle.path
    }

    /// The known content now, without I/O. Empty before it was [`ready`](Self::ready), and while there is no
    /// node at the path.
    pub fn current(&self) -> TreeSnapshot {
        TreeSnapshot(self.handle.store.current())
    }

    /// True when the known content may be out of date: before everything was read once, from a lost link
    /// until everything was read again, while the node at the path cannot be read, and once the client is
    /// closed.
    pub fn is_stale(&self) -> bool {
        self.handle.store.status().borrow().stale_since.is_some()
    }

    /// Time since it became [stale](Self::is_stale); `None` when it is not.
    pub fn stale_for(&self) -> Option<Duration> {
        self.handle.store.status().borrow().stale_for(&*self.handle.shared.config.clock)
    }

    /// The error of the last read, while the node at the path cannot be read or listed. It is tried again all
    /// the time.
    pub fn last_error(&self) -> Option<Error> {
        self.handle.store.status().borrow().last_error.clone()
    }

    /// Waits until everything was read once, at most for the operation timeout.
    ///
    /// # Errors
    /// That of the node at the path, when the servers refuse it, as `NoAuth`; else `Timeout`, `Closed`. The
    /// cache goes on to try.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn ready(&self) -> impl Future<Output = Result<(), Error>> + Send + use<> {
        let cache = self.clone();
        async move {
            let Handle { shared, path, store, .. } = &*cache.handle;
            status::ready(shared, path, store.status(), cache.operation_timeout).await
        }
    }

    /// Subscribes to the present content and its changes. Each subscriber has a stream of its own.
    pub fn changes(&self) -> TreeEvents {
        TreeEvents(ChildrenEvents::new(Arc::clone(&self.handle)))
    }
}

impl fmt::Debug for TreeCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TreeCache")
            .field("path", &self.path())
            .field("nodes", &self.current().len())
            .field("stale", &self.is_stale())
            .finish_non_exhaustive()
    }
}
