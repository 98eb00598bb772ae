use super::children_event::ChildrenEvents;
use super::children_store::ChildrenStore;
use super::keys::Keys;
use super::snapshot::ChildrenSnapshot;
use super::status;
use super::task::CacheTask;
use super::tree_options::TreeOptions;
use crate::client::Client;
use crate::error::Error;
use crate::operation::Shared;
use crate::task::SyncStream;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The children of a node with their data, kept in memory. For users of Curator: what `PathChildrenCache`
/// does.
///
/// It is loaded by one listing and reads of many children at a time, and can be used then; a watch on each
/// child is set in the background, by requests for many that also tell what changed in between. From then on
/// each change is read as soon as it is told, also by deletion and creation of the same name. Cheap to
/// clone; all clones are one cache with one task.
///
/// After a lost link, and in a new session, it lists and reads everything again, after a random pause of up
/// to a millisecond for each child and a second at most, so that the caches of many clients do not all do so
/// at once. Until that is done it goes on to answer with what it knew, and [`is_stale`](Self::is_stale).
///
/// Only the children themselves are kept, not the nodes below them, and not folders of clients' own nodes
/// (`_docent`). Watches are the one-shot watches that every server has, or one
/// [persistent watch](crate::ClientBuilder::persistent_watches) on the folder: then nothing is listed after a
/// change, and [`folder`](ChildrenSnapshot::folder) is as of the last listing.
///
/// # Guarantees
/// The shown content is never older than before, and comes to that of the servers. Values in between may be
/// left out. A child that cannot be read spoils no other. At most 64 requests of a cache are under way at a
/// time.
///
/// # Assumptions
/// A change of the access control list is not told by the servers: a child that nobody may read any more
/// keeps its last value. All of the children's data fits in memory; with some 10,000 children that come and
/// go often, listing them takes the servers longer than anything else.
///
/// # On drop
/// When the last clone and the last subscriber are dropped its task ends and its watches are removed. It does
/// not keep the client open.
///
/// # Examples
/// ```no_run
/// # use docent_core::{ChildrenCache, ChildrenEvent, Client};
/// # use futures_util::StreamExt;
/// # async fn example(client: Client) -> Result<(), docent_core::Error> {
/// let workers = ChildrenCache::new(&client, "/workers")?;
/// workers.ready().await?;
/// for (name, node) in workers.current().iter() {
///     println!("{name}: {} bytes", node.data.len());
/// }
/// let mut events = workers.changes();
/// while let Some(event) = events.next().await {
///     match event? {
///         ChildrenEvent::Added(name, _) => println!("{name} is there"),
///         ChildrenEvent::Updated(name, node) => println!("{name} has version {}", node.stat.version),
///         ChildrenEvent::Delete(name) => println!("{name} is gone"),
///         _ => {}
///     }
/// }
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct ChildrenCache {
    handle: Arc<Handle>,
    operation_timeout: Duration,
}

/// Its drop is the drop of the last clone and subscriber.
pub(super) struct Handle {
    // Not a `Client`: a cache does not keep its client open.
    pub(super) shared: Arc<Shared>,
    pub(super) path: String,
    pub(super) store: Arc<ChildrenStore>,
    pub(super) abandoned: CancellationToken,
}

impl Handle {
    /// Starts the task of a cache.
    pub(super) fn start(shared: Arc<Shared>, path: String, keys: Keys, options: TreeOptions) -> Self {
        let store = Arc::new(ChildrenStore::new(Arc::clone(&shared.config.clock)));
        let abandoned = CancellationToken::new();
        let (own_store, own_abandoned) = (Arc::clone(&store), abandoned.clone());
        let task = CacheTask::new(Arc::clone(&shared), path.clone(), keys, options, own_store, own_abandoned);
        shared.tasks.spawn_on(task.run(), &shared.runtime);
        Self { shared, path, store, abandoned }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.abandoned.cancel();
    }
}

impl ChildrenCache {
    /// Begins to keep the children of `path`, which need not exist yet.
    ///
    /// # Errors
    /// `InvalidInput` when the path breaks a rule, `Closed`.
    pub fn new(client: &Client, path: &str) -> Result<Self, Error> {
        let shared = Arc::clone(client.shared());
        let full = shared.namespace.full("watch", path)?;
        if shared.closing.is_cancelled() {
            return Err(Error::new(shared.closed(), "watch").at(path));
        }
        let options = TreeOptions { max_depth: 1, ..TreeOptions::default() };
        let handle = Handle::start(shared, path.to_owned(), Keys::names(full), options);
        Ok(Self { handle: Arc::new(handle), operation_timeout: client.operation_timeout() })
    }

    /// The path, as it was given.
    pub fn path(&self) -> &str {
        &self.handle.path
    }

    /// The known content now, without I/O. Empty before it was [`ready`](Self::ready).
    pub fn current(&self) -> Arc<ChildrenSnapshot> {
        self.handle.store.current()
    }

    /// True when the known content may be out of date: before everything was read once, from a lost link
    /// until everything was read again, while the children cannot be listed, and once the client is closed.
    pub fn is_stale(&self) -> bool {
        self.handle.store.status().borrow().stale_since.is_some()
    }

    /// Time since it became [stale](Self::is_stale); `None` when it is not.
    pub fn stale_for(&self) -> Option<Duration> {
        self.handle.store.status().borrow().stale_for(&*self.handle.shared.config.clock)
    }

    /// The error of the last listing, while the children cannot be listed. It is tried again all the time.
    pub fn last_error(&self) -> Option<Error> {
        self.handle.store.status().borrow().last_error.clone()
    }

    /// Waits until everything was read once, at most for the operation timeout.
    ///
    /// # Errors
    /// That of the listing, when the servers refuse it, as `NoAuth`; else `Timeout`, `Closed`. The cache goes
    /// on to try.
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

    /// Errors with which the servers refuse to let the children be listed, each when it is news. Ends when
    /// the client is closed.
    pub fn errors(&self) -> SyncStream<Error> {
        status::errors(self.handle.store.status())
    }

    /// Follows the present content and its changes. Each subscriber has a stream of its own.
    pub fn changes(&self) -> ChildrenEvents {
        ChildrenEvents::new(Arc::clone(&self.handle))
    }
}

impl fmt::Debug for ChildrenCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChildrenCache")
            .field("path", &self.path())
            .field("children", &self.current().len())
            .field("stale", &self.is_stale())
            .finish_non_exhaustive()
    }
}
