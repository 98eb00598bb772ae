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

/// The data of one node, kept in memory, whether the node exists or not. For users of Curator: it does the
/// work of the class of the same name.
///
/// It is read with a watch, again when that fires, and again after a lost link and in a new session. Until
/// that is done it goes on to answer with what it knew, and [`is_stale`](Self::is_stale). Cheap to clone; all
/// clones are one cache with one task.
///
/// # Guarantees
/// The shown node is never older than before, and comes to that of the servers. Values in between may be left
/// out. Changes are told by transaction, also when the new data equals the old, and when the node was created
/// again.
///
/// # On drop
/// When the last clone and the last stream of changes are dropped its task ends and its watch is removed. It
/// does not keep the client open.
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

/// Shared by clones and streams: its drop is that of the last one.
pub(super) struct Handle {
    // Not a `Client`: a cache does not keep its client open.
    pub(super) shared: Arc<Shared>,
    pub(super) path: String,
    status: watch::Receiver<Status>,
    value: watch::Receiver<Value>,
    joins: mpsc::UnboundedSender<Join>,
    abandoned: CancellationToken,
}

impl Handle {
    /// Begins to keep the data of the node at the full path `full`.
    fn start(shared: &Arc<Shared>, path: &str, full: String) -> Self {
        let (store, status) = watch::channel(Status::new(&*shared.config.clock));
        let (values, value) = watch::channel(None);
        let (joins, joined) = mpsc::unbounded_channel();
        let abandoned = CancellationToken::new();
        let (shared, path) = (Arc::clone(shared), path.to_owned());
        let task =
            NodeTask::new(Arc::clone(&shared), path.clone(), full, store, values, joined, abandoned.clone());
        shared.tasks.spawn_on(task.run(), &shared.runtime);
        Self { shared, path, status, value, joins, abandoned }
    }
}

/// `None` before it was read, `Some(None)` for no node.
pub(super) type Value = Option<Option<Arc<Node>>>;

impl Drop for Handle {
    fn drop(&mut self) {
        self.abandoned.cancel();
    }
}

impl NodeCache {
    /// Begins to keep the data of `path`, which need not exist yet.
    ///
    /// # Errors
    /// `InvalidInput` when the path breaks a rule, `Closed`.
    pub fn new(client: &Client, path: &str) -> Result<Self, Error> {
        let full = checked(client, path)?;
        Ok(Self::with(Arc::new(Handle::start(client.shared(), path, full)), client))
    }

    /// The cache of `path` that this client has in common, which this begins if there is none.
    pub(super) fn common(client: &Client, path: &str) -> Result<Self, Error> {
        let (full, shared) = (checked(client, path)?, client.shared());
        let handle = shared.common.get(path.to_owned(), || Handle::start(shared, path, full));
        Ok(Self::with(handle, client))
    }

    fn with(handle: Arc<Handle>, client: &Client) -> Self {
        Self { handle, operation_timeout: client.operation_timeout() }
    }

    /// Asks the task to tell when it shows what the servers have, as far as they told.
    pub(super) fn join(&self, hears_errors: bool) -> oneshot::Receiver<Result<(), Error>> {
        let (told, answer) = oneshot::channel();
        // Without a task nobody is told, which says that it is gone.
        let _ = self.handle.joins.send(Join { hears_errors, told });
        answer
    }

    /// The path, as it was given.
    pub fn path(&self) -> &str {
        &self.handle.path
    }

    /// The known node now, without I/O; `None` when there is no node, and before it was
    /// [`ready`](Self::ready).
    pub fn current(&self) -> Option<Arc<Node>> {
        self.handle.value.borrow().clone().flatten()
    }

    /// True when the known node may be out of date: before the node was read once, from a lost link until it
    /// was read again, while it cannot be read, and once the client is closed.
    pub fn is_stale(&self) -> bool {
        self.handle.status.borrow().stale_since.is_some()
    }

    /// Time since it became [stale](Self::is_stale); `None` when it is not.
    pub fn stale_for(&self) -> Option<Duration> {
        self.handle.status.borrow().stale_for(&*self.handle.shared.config.clock)
    }

    /// The error of the last read, as `NoAuth`, while the node cannot be read. It is tried again all the
    /// time.
    pub fn last_error(&self) -> Option<Error> {
        self.handle.status.borrow().last_error.clone()
    }

    /// Waits until the node was read once, at most for the operation timeout.
    ///
    /// # Errors
    /// That of the read, when the servers refuse it, as `NoAuth`; else `Timeout`, `Closed`. The cache goes on
    /// to try.
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

    /// Errors with which the servers refuse to let the node be read, each when it is news. Ends when the
    /// client is closed.
    pub fn errors(&self) -> SyncStream<Error> {
        status::errors(self.handle.status.clone())
    }

    /// Follows whether it [is stale](Self::is_stale): the present answer first, and then each change. Ends
    /// when the client is closed, or the last handle of the cache was dropped.
    pub fn staleness(&self) -> SyncStream<bool> {
        status::staleness(self.handle.status.clone())
    }

    /// Follows the node: the present one, as soon as it is known, and then each change; `None` for no node. A
    /// slow reader skips values, never the last one. An error, as `NoAuth`, says that the node cannot be
    /// read; it is told once and tried again all the time. Ends when the client is closed.
    pub fn changes(&self) -> NodeChanges {
        let mut values = self.handle.value.clone();
        values.mark_changed();
        let state = (Arc::clone(&self.handle), values);
        let changes = stream::unfold(state, |(handle, mut values)| async move {
            loop {
                // The task goes with the client.
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

/// The full path, of a client that is not closed.
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

/// The changes of a [`NodeCache`]. It keeps the cache alive.
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
