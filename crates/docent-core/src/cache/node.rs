use super::node_task::NodeTask;
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
use tokio::sync::watch;
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
    handle: Arc<Handle>,
    operation_timeout: Duration,
}

/// Shared by clones and streams: its drop is that of the last one.
struct Handle {
    // Not a `Client`: a cache does not keep its client open.
    shared: Arc<Shared>,
    path: String,
    status: watch::Receiver<Status>,
    value: watch::Receiver<Value>,
    abandoned: CancellationToken,
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
        let shared = Arc::clone(client.shared());
        let full = shared.namespace.full("watch", path)?;
        if shared.closing.is_cancelled() {
            return Err(Error::new(shared.closed(), "watch").at(path));
        }
        let (store, status) = watch::channel(Status::new(&*shared.config.clock));
        let (values, value) = watch::channel(None);
        let abandoned = CancellationToken::new();
        let path = path.to_owned();
        let task = NodeTask::new(Arc::clone(&shared), path.clone(), full, store, values, abandoned.clone());
        shared.tasks.spawn_on(task.run(), &shared.runtime);
        let handle = Arc::new(Handle { shared, path, status, value, abandoned });
        Ok(Self { handle, operation_timeout: client.operation_timeout() })
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
