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
use crate::task::SyncStream;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// A node with everything below it, kept in memory. It corresponds to Curator's `TreeCache` and
/// `CuratorCache`.
///
/// Each node is read with a watch, and listed with another watch, unless it is ephemeral or at the [maximum
/// depth](TreeCacheBuilder::max_depth). When a watch fires, the node is read again. The data of many nodes is
/// read with one request, and their watches are set afterwards, several with one request. Cheap to clone; all
/// clones share one cache with one task.
///
/// After a lost link, and in a new session, the cache reads everything again. It first waits for a random
/// pause of up to a millisecond for each node, at most a second, so that the caches of many clients do not
/// all reload at the same time. Until the reload is done, the cache returns the last known content, and
/// [`is_stale`](Self::is_stale) returns true.
///
/// By default the cache uses two one-shot watches for each node, which every server supports. With a
/// [persistent watch](crate::ClientBuilder::persistent_watches) it uses one watch for the whole tree. A
/// [`ChildrenCache`](crate::ChildrenCache) is cheaper if one folder is enough.
///
/// # Guarantees
/// The shown data of a node never goes back to an older state, and the content converges to that of the
/// servers. Intermediate values may be skipped. Nodes are read independently: a snapshot does not show a
/// single moment of the servers. A node that cannot be read does not affect other nodes. At most 64 requests
/// of a cache are in flight at a time.
///
/// # Assumptions
/// Servers do not report changes of an access control list: a node that may no longer be read keeps its last
/// value. All data fits in memory, or the cache is built [without data](TreeCacheBuilder::without_data). A
/// folder's listing fits into one reply.
///
/// # On drop
/// When the last clone and the last subscriber are dropped, the cache's task ends and its watches are
/// removed. The cache does not keep the client open.
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
///         TreeEvent::Delete(path) => println!("{path} was deleted"),
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
    /// Starts caching `path` and everything below it. The node need not exist yet.
    ///
    /// # Errors
    /// `InvalidInput` if the path breaks a rule, `Closed`.
    pub fn new(client: &Client, path: &str) -> Result<Self, Error> {
        Self::builder(client, path).build()
    }

    /// Returns a builder for a cache with other settings.
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

    /// The path as given to the constructor.
    pub fn path(&self) -> &str {
        &self.handle.path
    }

    /// The currently known content, without I/O. Empty until the cache is [`ready`](Self::ready), and while
    /// the node at the path does not exist.
    pub fn current(&self) -> TreeSnapshot {
        TreeSnapshot(self.handle.store.current())
    }

    /// Returns true if the known content may be out of date: before the first load, from a lost link until
    /// everything was read again, while the node at the path cannot be read, and after the client is closed.
    pub fn is_stale(&self) -> bool {
        self.handle.store.status().borrow().stale_since.is_some()
    }

    /// Time since the cache became [stale](Self::is_stale); `None` if it is not stale.
    pub fn stale_for(&self) -> Option<Duration> {
        self.handle.store.status().borrow().stale_for(&*self.handle.shared.config.clock)
    }

    /// The error of the last read, while the node at the path cannot be read or listed. The cache keeps
    /// retrying.
    pub fn last_error(&self) -> Option<Error> {
        self.handle.store.status().borrow().last_error.clone()
    }

    /// Waits until the cache is loaded, at most for the operation timeout.
    ///
    /// # Errors
    /// The error of the node at the path if the servers refuse it, such as `NoAuth`; otherwise `Timeout`,
    /// `Closed`. The cache keeps retrying.
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

    /// Returns a stream of the errors with which the servers refuse to read or list the node at the path. An
    /// error of the same kind as the previous one is reported again only after a read has succeeded. Ends
    /// when the client is closed.
    pub fn errors(&self) -> SyncStream<Error> {
        status::errors(self.handle.store.status())
    }

    /// Subscribes to the current content and its changes. Each subscriber has a separate stream.
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
