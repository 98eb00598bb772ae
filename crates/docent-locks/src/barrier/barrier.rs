use super::error::{BarrierError, within};
use docent_core::recipe::{InOperation, NodePath, debug_handle};
use docent_core::{Client, CreateMode, Error, ErrorKind, planted};
use futures_util::StreamExt;
use std::fmt;
use std::future::Future;
use std::time::Duration;

/// A barrier that blocks every process that waits at it, as long as it is set.
///
/// # Expected flow
/// One process [sets](Self::set) the barrier, many [wait](Self::wait) at it, and when a process
/// [removes](Self::remove) it, all waiters continue. The layout is that of Curator's `DistributedBarrier`:
/// the barrier is set while its persistent node exists.
///
/// # Guarantees
/// - A process that begins to wait after the barrier was set waits until it is removed, even across lost
///   connections, new sessions and restarts of the servers.
/// - A process that is waiting when the barrier is removed continues, even if the barrier is set again
///   immediately.
/// - A waiter leaves no watch behind.
///
/// # Caveats
/// The barrier outlives the process that set it. If that process crashes, another one has to remove the
/// barrier.
#[derive(Clone)]
pub struct Barrier {
    client: Client,
    path: NodePath,
}

impl Barrier {
    /// Creates a handle for the barrier at `path`.
    ///
    /// # Errors
    /// `InvalidInput` if the path breaks a rule.
    pub fn new(client: &Client, path: &str) -> Result<Self, Error> {
        Ok(Self { client: client.clone(), path: NodePath::of_recipe(client, "barrier", path)? })
    }

    /// Returns the path that was passed to the constructor.
    pub fn path(&self) -> &str {
        self.path.as_str()
    }

    /// Sets the barrier. Returns false if it was already set.
    ///
    /// # Errors
    /// `NoAuth`, `Timeout`, `Closed`; `OutcomeUnknown` if the reply was lost and the client could not find
    /// out whether the request was applied.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the barrier may have been set.
    pub fn set(&self) -> impl Future<Output = Result<bool, Error>> + Send + use<> {
        let barrier = self.clone();
        async move { Box::pin(barrier.create()).await.in_operation("set") }
    }

    async fn create(&self) -> Result<bool, Error> {
        loop {
            let identity = self.client.identity().to_owned();
            // An exact write: a plain create that is applied late would set the barrier again after it was
            // removed (decision 11).
            let create = self.client.transaction().create(&self.path, identity, CreateMode::Persistent);
            match create.commit_exactly().await {
                Ok(_) => return Ok(true),
                Err(error) if error.kind() == ErrorKind::NodeExists => return Ok(false),
                Err(error) if error.kind() == ErrorKind::NoNode => {
                    self.client.ensure_parent(&self.path).await?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns whether the barrier is set, as seen by the server to which this client is connected.
    ///
    /// # Errors
    /// `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn is_set(&self) -> impl Future<Output = Result<bool, Error>> + Send + use<> {
        let barrier = self.clone();
        async move {
            let stat = barrier.client.exists(&barrier.path).await.in_operation("is_set")?;
            Ok(stat.is_some())
        }
    }

    /// Removes the barrier if it is set, so that all waiters continue.
    ///
    /// # Errors
    /// `NotEmpty` if the barrier's node has children; `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe. The removal can be repeated without harm.
    pub fn remove(&self) -> impl Future<Output = Result<(), Error>> + Send + use<> {
        let barrier = self.clone();
        // An exact write: a plain delete that is applied late would remove a barrier that was set again since
        // (decision 11).
        async move { barrier.client.ensure_absent(&barrier.path).await.in_operation("remove") }
    }

    /// Waits until the barrier is not set; returns immediately if it is not set.
    ///
    /// # Errors
    /// `Timeout` if no server can be reached for the first read, `NoAuth`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn wait(&self) -> impl Future<Output = Result<(), Error>> + Send + use<> {
        let barrier = self.clone();
        async move { barrier.until_removed().await.in_operation("wait") }
    }

    async fn until_removed(&self) -> Result<(), Error> {
        // A lagging server may not know yet that the barrier was set.
        self.client.sync(&self.path).await?;
        let mut states = self.client.watch_exists(&self.path)?;
        let mut first = None;
        while let Some(stat) = states.next().await {
            match stat? {
                // A node with another czxid can exist only after the node that blocked this call was removed.
                Some(stat) if stat.czxid == *first.get_or_insert(stat.czxid) && !planted!(BarrierIgnored) => {
                }
                _ => return Ok(()),
            }
        }
        // The stream ends when the client is closed; this request returns the matching error.
        self.client.sync(&self.path).await
    }

    /// Waits like [`wait`](Self::wait), for at most `timeout`.
    ///
    /// # Errors
    /// [`BarrierError::TimedOut`] if the timeout expired; otherwise those of [`wait`](Self::wait).
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn wait_timeout(
        &self,
        timeout: Duration,
    ) -> impl Future<Output = Result<(), BarrierError>> + Send + use<> {
        within(timeout, "wait", self.path().to_owned(), self.wait())
    }
}

impl fmt::Debug for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_handle(f, "Barrier", self.path(), &self.client).finish_non_exhaustive()
    }
}
