use super::children::{ChildrenCache, ChildrenEvent, ChildrenEvents};
use super::keys::Keys;
use super::snapshot::ChildrenSnapshot;
use crate::client::Client;
use crate::error::Error;
use crate::node::Node;
use crate::task::SyncStream;
use futures_core::Stream;
use futures_util::StreamExt;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
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
pub struct TreeCache(ChildrenCache);

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
        TreeCacheBuilder { client: client.clone(), path: path.into(), options: TreeOptions::default() }
    }

    /// The path as given to the constructor.
    pub fn path(&self) -> &str {
        self.0.path()
    }

    /// The currently known content, without I/O. Empty until the cache is [`ready`](Self::ready), and while
    /// the node at the path does not exist.
    pub fn current(&self) -> TreeSnapshot {
        TreeSnapshot(self.0.current())
    }

    /// Returns true if the known content may be out of date: before the first load, from a lost link until
    /// everything was read again, while the node at the path cannot be read, and after the client is closed.
    pub fn is_stale(&self) -> bool {
        self.0.is_stale()
    }

    /// Time since the cache became [stale](Self::is_stale); `None` if it is not stale.
    pub fn stale_for(&self) -> Option<Duration> {
        self.0.stale_for()
    }

    /// The error of the last read, while the node at the path cannot be read or listed. The cache keeps
    /// retrying.
    pub fn last_error(&self) -> Option<Error> {
        self.0.last_error()
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
        self.0.ready()
    }

    /// Returns a stream of the errors with which the servers refuse to read or list the node at the path. An
    /// error of the same kind as the previous one is reported again only after a read has succeeded. Ends
    /// when the client is closed.
    pub fn errors(&self) -> SyncStream<Error> {
        self.0.errors()
    }

    /// Subscribes to the current content and its changes. Each subscriber has a separate stream.
    pub fn changes(&self) -> TreeEvents {
        TreeEvents(self.0.changes())
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

/// Settings of a [`TreeCache`].
#[derive(Clone)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct TreeCacheBuilder {
    client: Client,
    path: String,
    options: TreeOptions,
}

impl TreeCacheBuilder {
    /// Caches only nodes up to `depth` levels below the path: 0 means only the node itself, 1 includes its
    /// children. No limit by default.
    pub fn max_depth(mut self, depth: usize) -> Self {
        self.options.max_depth = depth;
        self
    }

    /// Caches the stats of the nodes without their data. The data is not read, and each shown node has empty
    /// data. Nodes without children then need no `READ` permission.
    pub fn without_data(mut self) -> Self {
        self.options.without_data = true;
        self
    }

    /// Caches a node below the path only if `select` returns true for its path; otherwise the node and
    /// everything below it are omitted.
    ///
    /// The cache's task calls `select` for each name of each listing. Therefore `select` must be fast and
    /// always return the same result for a path. If it panics, the node is omitted and the panic is logged.
    pub fn select(mut self, select: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        self.options.select = Some(Arc::new(select));
        self
    }

    /// Starts caching the tree.
    ///
    /// # Errors
    /// `InvalidInput` if the path breaks a rule, `Closed`.
    pub fn build(self) -> Result<TreeCache, Error> {
        let Self { client, path, options } = self;
        ChildrenCache::start(&client, &path, |full| Keys::paths(&path, full), options).map(TreeCache)
    }
}

impl fmt::Debug for TreeCacheBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TreeCacheBuilder")
            .field("path", &self.path)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// Predicate that returns whether a path is cached.
type Select = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// Settings of a tree cache.
#[derive(Clone)]
pub(super) struct TreeOptions {
    pub(super) max_depth: usize,
    pub(super) without_data: bool,
    pub(super) select: Option<Select>,
}

impl Default for TreeOptions {
    fn default() -> Self {
        Self { max_depth: usize::MAX, without_data: false, select: None }
    }
}

impl fmt::Debug for TreeOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TreeOptions")
            .field("max_depth", &self.max_depth)
            .field("without_data", &self.without_data)
            .field("selects", &self.select.is_some())
            .finish()
    }
}

impl TreeOptions {
    /// Returns whether the user selects the node at a path. A node whose selection panics is omitted.
    pub(super) fn selects(&self, path: &str) -> bool {
        let Some(select) = &self.select else { return true };
        catch_unwind(AssertUnwindSafe(|| select(path))).unwrap_or_else(|payload| {
            // The drop of the payload is user code as well, and a panic in it would not be caught.
            std::mem::forget(payload);
            // Event: The closure that selects the nodes of a tree cache panicked. The cache omits the node.
            // Action: Fix the closure passed to the cache's builder.
            // Without client: a panic is logged where the closure is called.
            tracing::error!(target: "docent::cache", %path, "the cache's node selection panicked; omitting the node");
            false
        })
    }
}

/// A tree of nodes by their absolute paths, as a [`TreeCache`](super::TreeCache) knew them at one time.
///
/// A snapshot does not change. A change of the cache while a snapshot is held copies a few hundred pointers,
/// however many nodes there are; a change while none is held copies nothing. Cheap to clone.
#[derive(Clone)]
pub struct TreeSnapshot(pub(super) Arc<ChildrenSnapshot>);

impl TreeSnapshot {
    /// Returns the node at a path.
    pub fn get(&self, path: &str) -> Option<&Arc<Node>> {
        self.0.get(path)
    }

    /// Iterates over the nodes, ordered by path.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Arc<str>, &Arc<Node>)> + DoubleEndedIterator {
        self.0.iter()
    }

    /// Iterates over the children of the node at a path, by their absolute paths. Visits all nodes below that
    /// node.
    pub fn children<'a>(
        &'a self,
        path: &str,
    ) -> impl Iterator<Item = (&'a Arc<str>, &'a Arc<Node>)> + use<'a> {
        let from = if path == "/" { 1 } else { path.len() + 1 };
        self.descendants(path).filter(move |(below, _)| !below[from..].contains('/'))
    }

    /// Iterates over all nodes below the node at a path, excluding that node, by their absolute paths.
    pub fn descendants<'a>(
        &'a self,
        path: &str,
    ) -> impl Iterator<Item = (&'a Arc<str>, &'a Arc<Node>)> + use<'a> {
        let prefix = if path == "/" { path.to_owned() } else { format!("{path}/") };
        let first = self.0.child_after(Some(&prefix));
        let below = std::iter::successors(first, |(path, _)| self.0.child_after(Some(path)));
        below.take_while(move |(path, _)| path.starts_with(&prefix))
    }

    /// Iterates over the nodes that exist but could not be read or listed the last time, with the reason. The
    /// last known data of such a node is still shown.
    pub fn unreadable(&self) -> impl ExactSizeIterator<Item = (&Arc<str>, &Error)> {
        self.0.unreadable()
    }

    /// Number of known nodes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if no node is known.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

// The data of the nodes is not printed.
impl fmt::Debug for TreeSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TreeSnapshot")
            .field("nodes", &self.len())
            .field("unreadable", &self.unreadable().len())
            .finish_non_exhaustive()
    }
}

/// Event that a [`TreeCache`](super::TreeCache) sends to a subscriber. Paths are absolute, as the client
/// knows them.
#[derive(Clone)]
#[non_exhaustive]
pub enum TreeEvent {
    /// The events up to the next [`Ready`](Self::Ready) contain everything: discard all nodes reported
    /// before.
    Init,
    /// A node appeared: it is new to this subscriber, or a different node (with another `czxid`) replaced the
    /// one that was reported before.
    Added(Arc<str>, Arc<Node>),
    /// The data of a node that was reported before has changed.
    Updated(Arc<str>, Arc<Node>),
    /// A node was deleted. The deletions of the nodes below it are reported first.
    Delete(Arc<str>),
    /// A node exists but cannot be read or listed; its last known state is kept. The cache retries, and an
    /// `Added`, `Updated` or `Delete` follows when a read succeeds.
    Unreadable(Arc<str>, Error),
    /// The content reported so far is complete and current, as of the cache's last reads.
    Ready,
    /// From here on the content may be out of date: the link was lost, or this subscriber was too slow. A
    /// [`Ready`](Self::Ready) ends the gap, after the missed changes, or after an [`Init`](Self::Init) and
    /// the whole content.
    Gap,
}

// The data of the nodes is not printed.
impl fmt::Debug for TreeEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Init => f.write_str("Init"),
            Self::Added(path, node) => write!(f, "Added({path:?}, mzxid {})", node.stat.mzxid),
            Self::Updated(path, node) => write!(f, "Updated({path:?}, mzxid {})", node.stat.mzxid),
            Self::Delete(path) => write!(f, "Delete({path:?})"),
            Self::Unreadable(path, error) => write!(f, "Unreadable({path:?}, {error})"),
            Self::Ready => f.write_str("Ready"),
            Self::Gap => f.write_str("Gap"),
        }
    }
}

/// The events of a [`TreeCache`](super::TreeCache) for one subscriber. The stream starts with `Init`, an
/// `Added` for each node and `Ready` as soon as the cache is loaded, and continues with the changes.
///
/// Intermediate values may be skipped, but never the last one. For a slow subscriber, the cache keeps as many
/// events as there are nodes, and at least 1,024. A subscriber that falls further behind gets `Gap` and the
/// whole content again.
///
/// An error such as `NoAuth` means that the node at the cache's path cannot be read or listed. It is reported
/// once, and the cache keeps retrying; a `Ready` follows when a read succeeds. The stream ends when the
/// client is closed.
///
/// # On drop
/// The cache forgets the subscriber. A cache lives as long as any of its handles or subscribers.
#[must_use = "a stream does nothing unless it is polled"]
pub struct TreeEvents(pub(super) ChildrenEvents);

impl Stream for TreeEvents {
    type Item = Result<TreeEvent, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_next_unpin(cx).map(|event| event.map(|event| event.map(of_tree)))
    }
}

/// Converts the event of a cache whose keys are paths.
fn of_tree(event: ChildrenEvent) -> TreeEvent {
    match event {
        ChildrenEvent::Init => TreeEvent::Init,
        ChildrenEvent::Added(path, node) => TreeEvent::Added(path, node),
        ChildrenEvent::Updated(path, node) => TreeEvent::Updated(path, node),
        ChildrenEvent::Delete(path) => TreeEvent::Delete(path),
        ChildrenEvent::Unreadable(path, error) => TreeEvent::Unreadable(path, error),
        ChildrenEvent::Ready => TreeEvent::Ready,
        ChildrenEvent::Gap => TreeEvent::Gap,
    }
}

impl fmt::Debug for TreeEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TreeEvents").finish_non_exhaustive()
    }
}
