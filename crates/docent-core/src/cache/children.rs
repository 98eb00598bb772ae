use super::children_store::ChildrenStore;
use super::keys::Keys;
use super::snapshot::ChildrenSnapshot;
use super::status;
use super::task::CacheTask;
use super::tree::TreeOptions;
use crate::client::Client;
use crate::error::Error;
use crate::node::Node;
use crate::operation::Shared;
use crate::task::SyncStream;
use futures_core::Stream;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The children of a node with their data, kept in memory. It corresponds to Curator's `PathChildrenCache`.
///
/// The cache is loaded with one listing, and with reads of many children at a time; then it can be used.
/// Watches on the children are set in the background, many with one request. The servers reply to that
/// request with events for the children that changed since they were read. From then on, each change is read
/// as soon as it is reported, including deletion and re-creation under the same name. Cheap to clone; all
/// clones share one cache with one task.
///
/// After a lost link, and in a new session, the cache lists and reads everything again. It first waits for a
/// random pause of up to a millisecond for each child, at most a second, so that the caches of many clients
/// do not all reload at the same time. Until the reload is done, the cache returns the last known content,
/// and [`is_stale`](Self::is_stale) returns true.
///
/// The cache contains only the children, without the nodes below them and without folders of clients'
/// internal nodes (`_docent`). By default it uses one-shot watches, which every server supports. With a
/// [persistent watch](crate::ClientBuilder::persistent_watches) on the folder, the cache does not list the
/// folder after a change, and [`folder`](ChildrenSnapshot::folder) is as of the last listing.
///
/// # Guarantees
/// The shown content never goes back to an older state, and converges to that of the servers. Intermediate
/// values may be skipped. A child that cannot be read does not affect other children. At most 64 requests of
/// a cache are in flight at a time.
///
/// # Assumptions
/// Servers do not report changes of an access control list: a child that may no longer be read keeps its last
/// value. The data of all children fits in memory. With about 10,000 children that come and go often, listing
/// them becomes the largest load on the servers.
///
/// # On drop
/// When the last clone and the last subscriber are dropped, the cache's task ends and its watches are
/// removed. The cache does not keep the client open.
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
///         ChildrenEvent::Delete(name) => println!("{name} was deleted"),
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

/// State shared by clones and subscribers, dropped with the last of them.
struct Handle {
    // Not a `Client`, because a cache does not keep its client open.
    shared: Arc<Shared>,
    path: String,
    store: Arc<ChildrenStore>,
    abandoned: CancellationToken,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.abandoned.cancel();
    }
}

impl ChildrenCache {
    /// Starts caching the children of `path`, which need not exist yet.
    ///
    /// # Errors
    /// `InvalidInput` if the path breaks a rule, `Closed`.
    pub fn new(client: &Client, path: &str) -> Result<Self, Error> {
        let options = TreeOptions { max_depth: 1, ..TreeOptions::default() };
        Self::start(client, path, Keys::names, options)
    }

    /// Starts a cache of the nodes at and below `path`. `keys` returns their keys, from the full path.
    pub(super) fn start(
        client: &Client,
        path: &str,
        keys: impl FnOnce(String) -> Keys,
        options: TreeOptions,
    ) -> Result<Self, Error> {
        let shared = Arc::clone(client.shared());
        let full = shared.namespace.full("watch", path)?;
        if shared.closing.is_cancelled() {
            return Err(Error::new(shared.closed(), "watch").at(path));
        }
        let store = Arc::new(ChildrenStore::new(Arc::clone(&shared.config.clock)));
        let (path, abandoned) = (path.to_owned(), CancellationToken::new());
        let (own_store, own_abandoned) = (Arc::clone(&store), abandoned.clone());
        let task =
            CacheTask::new(Arc::clone(&shared), path.clone(), keys(full), options, own_store, own_abandoned);
        shared.tasks.spawn_on(task.run(), &shared.runtime);
        let handle = Arc::new(Handle { shared, path, store, abandoned });
        Ok(Self { handle, operation_timeout: client.operation_timeout() })
    }

    /// The path as given to the constructor.
    pub fn path(&self) -> &str {
        &self.handle.path
    }

    /// The currently known content, without I/O. Empty until the cache is [`ready`](Self::ready).
    pub fn current(&self) -> Arc<ChildrenSnapshot> {
        self.handle.store.current()
    }

    /// Returns true if the known content may be out of date: before the first load, from a lost link until
    /// everything was read again, while the children cannot be listed, and after the client is closed.
    pub fn is_stale(&self) -> bool {
        self.handle.store.status().borrow().stale_since.is_some()
    }

    /// Time since the cache became [stale](Self::is_stale); `None` if it is not stale.
    pub fn stale_for(&self) -> Option<Duration> {
        self.handle.store.status().borrow().stale_for(&*self.handle.shared.config.clock)
    }

    /// The error of the last listing, while the children cannot be listed. The cache keeps retrying.
    pub fn last_error(&self) -> Option<Error> {
        self.handle.store.status().borrow().last_error.clone()
    }

    /// Waits until the cache is loaded, at most for the operation timeout.
    ///
    /// # Errors
    /// The error of the listing if the servers refuse it, such as `NoAuth`; otherwise `Timeout`, `Closed`.
    /// The cache keeps retrying.
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

    /// Returns a stream of the errors with which the servers refuse the listing. An error of the same kind
    /// as the previous one is reported again only after a listing has succeeded. Ends when the client is
    /// closed.
    pub fn errors(&self) -> SyncStream<Error> {
        status::errors(self.handle.store.status())
    }

    /// Subscribes to the current content and its changes. Each subscriber has a separate stream.
    pub fn changes(&self) -> ChildrenEvents {
        let handle = Arc::clone(&self.handle);
        ChildrenEvents { id: handle.store.subscribe(), handle }
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

/// Event that a [`ChildrenCache`](super::ChildrenCache) sends to a subscriber.
#[derive(Clone)]
#[non_exhaustive]
pub enum ChildrenEvent {
    /// The events up to the next [`Ready`](Self::Ready) contain everything: discard all children reported
    /// before.
    Init,
    /// A child appeared: it is new to this subscriber, or a different node (with another `czxid`) replaced
    /// the one that was reported before.
    Added(Arc<str>, Arc<Node>),
    /// The data of a child that was reported before has changed.
    Updated(Arc<str>, Arc<Node>),
    /// A child was deleted.
    Delete(Arc<str>),
    /// A child exists but cannot be read; its last known data is kept. The cache retries, and an `Added`,
    /// `Updated` or `Delete` follows when a read succeeds.
    Unreadable(Arc<str>, Error),
    /// The content reported so far is complete and current, as of the cache's last reads.
    Ready,
    /// From here on the content may be out of date: the link was lost, or this subscriber was too slow. A
    /// [`Ready`](Self::Ready) ends the gap, after the missed changes, or after an [`Init`](Self::Init) and
    /// the whole content.
    Gap,
}

/// Item of a subscriber's stream: an event, or the reason why the children cannot be listed.
pub(super) type EventResult = Result<ChildrenEvent, Error>;

// The data of the nodes is not printed.
impl fmt::Debug for ChildrenEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Init => f.write_str("Init"),
            Self::Added(name, node) => write!(f, "Added({name:?}, mzxid {})", node.stat.mzxid),
            Self::Updated(name, node) => write!(f, "Updated({name:?}, mzxid {})", node.stat.mzxid),
            Self::Delete(name) => write!(f, "Delete({name:?})"),
            Self::Unreadable(name, error) => write!(f, "Unreadable({name:?}, {error})"),
            Self::Ready => f.write_str("Ready"),
            Self::Gap => f.write_str("Gap"),
        }
    }
}

/// The events of a [`ChildrenCache`](super::ChildrenCache) for one subscriber. The stream starts with `Init`,
/// an `Added` for each child and `Ready` as soon as the cache is loaded, and continues with the changes.
///
/// Intermediate values may be skipped, but never the last one. For a slow subscriber, the cache keeps as many
/// events as there are children, and at least 1,024. A subscriber that falls further behind gets `Gap` and
/// the whole content again.
///
/// An error such as `NoAuth` means that the children cannot be listed. It is reported once, and the cache
/// keeps retrying; a `Ready` follows when a listing succeeds. The stream ends when the client is closed.
///
/// # On drop
/// The cache forgets the subscriber. A cache lives as long as any of its handles or subscribers.
#[must_use = "a stream does nothing unless it is polled"]
pub struct ChildrenEvents {
    handle: Arc<Handle>,
    id: u64,
}

impl Stream for ChildrenEvents {
    type Item = Result<ChildrenEvent, Error>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<EventResult>> {
        self.handle.store.poll_next(self.id, cx)
    }
}

impl Drop for ChildrenEvents {
    fn drop(&mut self) {
        self.handle.store.unsubscribe(self.id);
    }
}

impl fmt::Debug for ChildrenEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChildrenEvents").finish_non_exhaustive()
    }
}

/// Events that contain the whole content, for a subscriber that is new or was too slow.
#[derive(Debug)]
pub(super) struct Replay {
    snapshot: Arc<ChildrenSnapshot>,
    /// Item that follows those of the children.
    end: Option<EventResult>,
    at: Stage,
}

#[derive(Debug)]
enum Stage {
    Start,
    Children(Option<Arc<str>>),
    Unreadable(Option<Arc<str>>),
}

impl Replay {
    pub(super) fn new(snapshot: Arc<ChildrenSnapshot>, end: Option<EventResult>) -> Self {
        Self { snapshot, end, at: Stage::Start }
    }
}

impl Iterator for Replay {
    type Item = EventResult;

    fn next(&mut self) -> Option<EventResult> {
        if matches!(self.at, Stage::Start) {
            self.at = Stage::Children(None);
            return Some(Ok(ChildrenEvent::Init));
        }
        if let Stage::Children(last) = &mut self.at {
            if let Some((name, node)) = self.snapshot.child_after(last.as_deref()) {
                *last = Some(Arc::clone(name));
                return Some(Ok(ChildrenEvent::Added(Arc::clone(name), Arc::clone(node))));
            }
            self.at = Stage::Unreadable(None);
        }
        if let Stage::Unreadable(last) = &mut self.at
            && let Some((name, error)) = self.snapshot.unreadable_after(last.as_deref())
        {
            *last = Some(Arc::clone(name));
            return Some(Ok(ChildrenEvent::Unreadable(Arc::clone(name), error.clone())));
        }
        self.end.take()
    }
}
