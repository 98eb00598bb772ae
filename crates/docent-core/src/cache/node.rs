use super::node_task::NodeTask;
use super::shared_node::Join;
use super::status;
use super::status::Status;
use crate::client::Client;
use crate::error::Error;
use crate::node::Node;
use crate::operation::Shared;
use crate::task::SyncStream;
use futures_core::Stream;
use futures_util::stream::{self, StreamExt};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

/// The data of one node, kept in memory. The node need not exist. Corresponds to Curator's `NodeCache`.
///
/// The node is read with a watch, and again when the watch fires, after a lost link and in a new session.
/// Until the node is read again, the cache returns the last known data, and [`is_stale`](Self::is_stale)
/// returns true. Cheap to clone; all clones share one cache with one task.
///
/// # Guarantees
/// The shown node never goes back to an older state, and converges to that of the servers. Intermediate
/// values may be skipped. Changes are detected by transaction, so that a write of equal data and a
/// re-creation of the node are reported.
///
/// # On drop
/// When the last clone and the last stream of changes are dropped, the cache's task ends and its watch is
/// removed. The cache does not keep the client open.
///
/// # Examples
/// ```no_run
/// # use docent_core::{Client, NodeCache};
/// # use futures_util::StreamExt;
/// # async fn example(client: Client) -> Result<(), docent_core::Error> {
/// let limits = NodeCache::new(&client, "/limits")?;
/// limits.ready().await?;
/// println!("{:?}", limits.current().map(|node| node.stat.version));
/// let mut changes = limits.changes();
/// while let Some(node) = changes.next().await {
///     println!("{}", if node?.is_some() { "set" } else { "gone" });
/// }
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct NodeCache {
    pub(super) handle: Arc<Handle>,
    pub(super) operation_timeout: Duration,
}

/// State shared by clones and streams, dropped with the last of them.
pub(super) struct Handle {
    // Not a `Client`, because a cache does not keep its client open.
    pub(super) shared: Arc<Shared>,
    pub(super) path: String,
    status: watch::Receiver<Status>,
    value: watch::Receiver<Value>,
    joins: mpsc::UnboundedSender<Join>,
    abandoned: CancellationToken,
}

impl Handle {
    /// Starts caching the data of the node at the full path `full`.
    fn start(shared: &Arc<Shared>, path: &str, full: String) -> Self {
        let (store, status) = watch::channel(Status::new(&*shared.config.clock));
        let (values, value) = watch::channel(None);
        let (joins, joined) = mpsc::unbounded_channel();
        let abandoned = CancellationToken::new();
        let (shared, path) = (Arc::clone(shared), path.to_owned());
        let task = NodeTask::new(Arc::clone(&shared), path.clone(), full, store, values, joined);
        shared.tasks.spawn_on(task.run(abandoned.clone()), &shared.runtime);
        Self { shared, path, status, value, joins, abandoned }
    }
}

/// `None` before the first read; `Some(None)` if the node does not exist.
pub(super) type Value = Option<Option<Arc<Node>>>;

impl Drop for Handle {
    fn drop(&mut self) {
        self.abandoned.cancel();
    }
}

impl NodeCache {
    /// Starts caching the data of `path`, which need not exist yet.
    ///
    /// # Errors
    /// `InvalidInput` if the path breaks a rule, `Closed`.
    pub fn new(client: &Client, path: &str) -> Result<Self, Error> {
        let full = checked(client, path)?;
        Ok(Self::with(Arc::new(Handle::start(client.shared(), path, full)), client))
    }

    /// Returns the cache of `path` that the handles of this client share, starting it if there is none.
    pub(super) fn common(client: &Client, path: &str) -> Result<Self, Error> {
        let (full, shared) = (checked(client, path)?, client.shared());
        let handle = shared.common.get(path.to_owned(), || Handle::start(shared, path, full));
        Ok(Self::with(handle, client))
    }

    fn with(handle: Arc<Handle>, client: &Client) -> Self {
        Self { handle, operation_timeout: client.operation_timeout() }
    }

    /// Asks the task for a notification when the cache shows the latest state that the servers have reported.
    pub(super) fn join(&self, wants_errors: bool) -> oneshot::Receiver<Result<(), Error>> {
        let (reply, answer) = oneshot::channel();
        // If the task has ended, the receiver fails, which reports the end.
        let _ = self.handle.joins.send(Join { wants_errors, reply });
        answer
    }

    /// The path as given to the constructor.
    pub fn path(&self) -> &str {
        &self.handle.path
    }

    /// The currently known node, without I/O. `None` if the node does not exist, and until the cache is
    /// [`ready`](Self::ready).
    pub fn current(&self) -> Option<Arc<Node>> {
        self.handle.value.borrow().clone().flatten()
    }

    /// Returns true if the known node may be out of date: before the first read, from a lost link until the
    /// node was read again, while it cannot be read, and after the client is closed.
    pub fn is_stale(&self) -> bool {
        self.handle.status.borrow().stale_since.is_some()
    }

    /// Time since the cache became [stale](Self::is_stale); `None` if it is not stale.
    pub fn stale_for(&self) -> Option<Duration> {
        self.handle.status.borrow().stale_for(&*self.handle.shared.config.clock)
    }

    /// The error of the last read, such as `NoAuth`, while the node cannot be read. The cache keeps retrying.
    pub fn last_error(&self) -> Option<Error> {
        self.handle.status.borrow().last_error.clone()
    }

    /// Waits until the node was read once, at most for the operation timeout.
    ///
    /// # Errors
    /// The error of the read if the servers refuse it, such as `NoAuth`; otherwise `Timeout`, `Closed`. The
    /// cache keeps retrying.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn ready(&self) -> impl Future<Output = Result<(), Error>> + Send + use<> {
        let cache = self.clone();
        async move {
            let Handle { shared, path, status, .. } = &*cache.handle;
            status::ready(shared, path, status.clone(), cache.operation_timeout).await
        }
    }

    /// Returns a stream of the errors with which the servers refuse the read. An error of the same kind as
    /// the previous one is reported again only after a read has succeeded. Ends when the client is closed.
    pub fn errors(&self) -> SyncStream<Error> {
        status::errors(self.handle.status.clone())
    }

    /// Returns a stream of whether the cache [is stale](Self::is_stale): the current state first, then each
    /// change. Ends when the client is closed, or when the last handle of the cache is dropped.
    pub fn staleness(&self) -> SyncStream<bool> {
        status::staleness(self.handle.status.clone())
    }

    /// Returns a stream of the node: the current state as soon as it is known, then each change; `None` if
    /// the node does not exist.
    ///
    /// A slow reader skips values, but never the last one. An error such as `NoAuth` means that the node
    /// cannot be read. It is reported once, and the cache keeps retrying. The stream ends when the client is
    /// closed.
    pub fn changes(&self) -> NodeChanges {
        let mut values = self.handle.value.clone();
        values.mark_changed();
        let state = (Arc::clone(&self.handle), values);
        let changes = stream::unfold(state, |(handle, mut values)| async move {
            loop {
                // The task ends with the client.
                values.changed().await.ok()?;
                let value = values.borrow_and_update().clone();
                if let Some(node) = value {
                    return Some((node, (handle, values)));
                }
            }
        });
        NodeChanges(SyncStream::new(stream::select(changes.map(Ok), self.errors().map(Err))))
    }
}

/// Returns the full path, or an error if the client is closed.
fn checked(client: &Client, path: &str) -> Result<String, Error> {
    let shared = client.shared();
    let full = shared.namespace.full("watch", path)?;
    match shared.closing.is_cancelled() {
        true => Err(Error::new(shared.closed(), "watch").at(path)),
        false => Ok(full),
    }
}

impl fmt::Debug for NodeCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeCache")
            .field("path", &self.path())
            .field("stat", &self.current().map(|node| node.stat))
            .field("stale", &self.is_stale())
            .finish_non_exhaustive()
    }
}

/// Stream of changes of a [`NodeCache`]. The stream keeps the cache alive.
#[must_use = "a stream does nothing unless it is polled"]
pub struct NodeChanges(SyncStream<Result<Option<Arc<Node>>, Error>>);

impl Stream for NodeChanges {
    type Item = Result<Option<Arc<Node>>, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_next_unpin(cx)
    }
}

impl fmt::Debug for NodeChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeChanges").finish_non_exhaustive()
    }
}
