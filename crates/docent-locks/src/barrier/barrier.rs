use super::error::{BarrierError, within};
use docent_core::recipe::{NodePath, debug_handle};
use docent_core::{Client, CreateMode, Error, ErrorKind, planted};
use futures_util::StreamExt;
use std::fmt;
use std::future::Future;
use std::time::Duration;

/// Barrier that holds up everybody who comes to it, for as long as it is set.
///
/// # Expected flow
/// Somebody [sets](Self::set) it, many [wait](Self::wait) at it, somebody [removes](Self::remove) it and all
/// go on. The layout is that of Curator's `DistributedBarrier`: the barrier is set while its node, a
/// persistent one, is there.
///
/// # Guarantees
/// - A process that begins to wait after it was set waits until it is removed, also through lost links, new
///   sessions and restarts of the servers.
/// - A process that waits when it is removed goes on, also when it is set again right away.
/// - A waiter leaves no watch behind.
///
/// # Caveats
/// It outlives the process that set it: if that one crashes, somebody else has to remove it.
#[derive(Clone)]
pub struct Barrier {
    client: Client,
    path: NodePath,
}

impl Barrier {
    /// The barrier at `path`.
    ///
    /// # Errors
    /// `InvalidInput` when the path breaks a rule.
    pub fn new(client: &Client, path: &str) -> Result<Self, Error> {
        Ok(Self { client: client.clone(), path: NodePath::new("barrier", path)? })
    }

    /// The path, as it was given.
    pub fn path(&self) -> &str {
        self.path.as_str()
    }

    /// Sets the barrier; false when it was set already.
    ///
    /// # Errors
    /// `NoAuth`, `Timeout`, `Closed`; `OutcomeUnknown` when the reply was lost and what became of it could
    /// not be found out.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the barrier may have been set.
    pub fn set(&self) -> impl Future<Output = Result<bool, Error>> + Send + use<> {
        let barrier = self.clone();
        async move { Box::pin(barrier.create()).await }
    }

    async fn create(&self) -> Result<bool, Error> {
        loop {
            let identity = self.client.identity().to_owned();
            // Exact: applied late, it would set the barrier again after somebody removed it (decision 11).
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

    /// True while it is set, at the server this client talks to.
    ///
    /// # Errors
    /// `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn is_set(&self) -> impl Future<Output = Result<bool, Error>> + Send + use<> {
        let barrier = self.clone();
        async move { Ok(barrier.client.exists(&barrier.path).await?.is_some()) }
    }

    /// Removes the barrier, if it is set: all who wait go on.
    ///
    /// # Errors
    /// `NotEmpty` when somebody put something below it; `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe: doing it again does no harm.
    pub fn remove(&self) -> impl Future<Output = Result<(), Error>> + Send + use<> {
        let barrier = self.clone();
        // Exact: applied late, it would remove a barrier that was set again since (decision 11).
        async move { barrier.client.ensure_absent(&barrier.path).await }
    }

    /// Waits until the barrier is not set; returns at once when it is not.
    ///
    /// # Errors
    /// `Timeout` when no server can be reached to look at first, `NoAuth`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn wait(&self) -> impl Future<Output = Result<(), Error>> + Send + use<> {
        let barrier = self.clone();
        async move { barrier.until_removed().await }
    }

    async fn until_removed(&self) -> Result<(), Error> {
        // A server that lags may not know yet that it was set.
        self.client.sync(&self.path).await?;
        let mut there = self.client.watch_exists(&self.path)?;
        let mut first = None;
        while let Some(stat) = there.next().await {
            match stat? {
                // Another node can be there only after the node that held us up was removed.
                Some(stat) if stat.czxid == *first.get_or_insert(stat.czxid) && !planted!(BarrierIgnored) => {
                }
                _ => return Ok(()),
            }
        }
        // The stream ends with the client: so does this.
        self.client.sync(&self.path).await
    }

    /// As [`wait`](Self::wait), for at most `timeout`.
    ///
    /// # Errors
    /// [`BarrierError::TimedOut`] when that was not enough; else as [`wait`](Self::wait).
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
