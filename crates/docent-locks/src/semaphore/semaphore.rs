use super::node::SemaphoreNode;
use super::permits::{Permits, PermitsTaken};
use super::shared_limit::Limit;
use super::{SemaphoreBuilder, SharedLimit};
use crate::acquire::{Progress, Target, in_time, try_line, wait_in, wait_out, with_timeout};
use crate::own_hold::{self, Wanted};
use crate::{AcquireError, NotAcquired, Permit};
use docent_core::recipe::{Hold, HoldSet, InOperation, Line, NodePath, RecipeKind, debug_handle};
use docent_core::{Client, Error};
use std::fmt;
use std::future::Future;
use std::time::Duration;

static KIND: RecipeKind = RecipeKind::new("semaphore", "acquire");
/// Line in which callers wait for permits.
static TURN: RecipeKind = RecipeKind::new("semaphore_turn", "acquire");

/// Text before the sequence numbers below `locks` and `leases`, as in Curator's `InterProcessSemaphoreV2`.
const LOCK: &str = "lock-";
pub(super) const LEASE: &str = "lease-";

/// A fair semaphore shared by many processes, with a fixed or a shared limit.
///
/// # Expected flow
/// `acquire` waits for its turn in a line of tickets below `locks`, like a mutex. The client that has the
/// turn takes tickets below `leases`, one for each permit and up to 1,000 in one request. It waits until its
/// tickets are within the limit, and passes the turn on. The layout is that of Curator's
/// `InterProcessSemaphoreV2`, and both count each other's permits.
///
/// # Guarantees
/// - There are never more permits than the limit, in the order of transactions. All clients of a path must
///   use the same limit, or share a [`SharedLimit`]. If a shared limit is lowered, permits that are already
///   held stay valid. A fixed limit is stored in the semaphore's node, like kazoo's, and clients with another
///   limit are refused; Curator does not check the limit.
/// - First come, first served, even for a client that wants many permits: permits that become available are
///   kept for the first client in the line.
/// - Several permits are acquired together or not at all.
/// - A release wakes one waiter: only the waiter that has the turn watches the permits. The end of a turn
///   wakes the next client and the client behind it, which reads the line again. A client that crashes blocks
///   the others until its session expires, and no longer.
/// - A permit whose client is disconnected, paused or starved learns of its loss like the guard of a
///   [`Mutex`](crate::Mutex).
///
/// # Assumptions
/// The session timeout is at least four server ticks, and the clock does not stop while the machine is
/// suspended.
///
/// # What happens
/// - *Connection lost:* a permit is held until its lease runs out. A waiter keeps its place in the line; if
///   it has the turn and the lease runs out, it moves to the end of the line.
/// - *Session expired:* permits are lost; a waiter moves to the end of the line.
/// - *Drop or cancel:* tickets and permits are deleted in the background, even if their creates were still in
///   flight.
///
/// # Caveats
/// Permits have no fence: a resource cannot distinguish a late holder from others. Permits are not reentrant,
/// and a client that waits for more permits while it holds some may wait for itself. Acquire all needed
/// permits with one call of [`acquire_many`](Self::acquire_many).
#[derive(Clone)]
pub struct Semaphore {
    pub(super) path: String,
    pub(super) turns: Line,
    pub(super) permits: Permits,
}

impl Semaphore {
    /// Creates a handle for the semaphore at `path` with a fixed number of permits. Missing parents are
    /// created on demand as containers, which the servers delete when they are empty.
    ///
    /// # Errors
    /// `InvalidInput` if the path breaks a rule, or if the number of permits is 0.
    pub fn new(client: &Client, path: &str, permits: u32) -> Result<Self, Error> {
        Self::builder(client, path).permits(permits).build()
    }

    /// Returns a builder for a semaphore with custom settings.
    pub fn builder(client: &Client, path: &str) -> SemaphoreBuilder {
        SemaphoreBuilder::new(client, path)
    }

    /// Creates a handle for the semaphore at `path` whose number of permits always follows `limit`. While the
    /// limit is 0, all callers wait.
    ///
    /// # Errors
    /// `InvalidInput` if the path breaks a rule.
    pub fn with_limit(client: &Client, path: &str, limit: &SharedLimit) -> Result<Self, Error> {
        Self::builder(client, path).limit(limit).build()
    }

    pub(super) fn with(client: &Client, path: &str, limit: Limit, checks: bool) -> Result<Self, Error> {
        // Validates the path first, so that an error names the path as it was passed.
        let path = NodePath::of_recipe(client, "semaphore", path)?;
        let fixed = if let Limit::Fixed(permits) = limit { Some(permits) } else { None };
        let node = SemaphoreNode::new(client, &path, fixed, checks);
        let leases = Line::new(client, &format!("{path}/leases"), &KIND, LEASE)?;
        Ok(Self {
            turns: Line::new(client, &format!("{path}/locks"), &TURN, LOCK)?,
            permits: Permits::new(node, leases, limit),
            path: path.into(),
        })
    }

    /// Returns the path that was passed to the constructor.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Acquires a permit, waiting as long as necessary. An outage of the servers is waited out.
    ///
    /// # Errors
    /// [`AcquireError::Core`] with `InvalidInput` if other clients use another fixed limit at the path (the
    /// error names both limits), or if the shared limit is not a number; with `MixedKinds` if the path has
    /// contenders of another kind; with `NoAuth`, also if the client may not access the semaphore's own node;
    /// with `AuthFailed`, `ShortLease`, `SequenceExhausted`, `EnsembleRolledBack` or `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe, but cancelling it loses your place in the queue.
    pub fn acquire(&self) -> impl Future<Output = Result<Permit, AcquireError>> + Send + use<> {
        self.acquire_many(1)
    }

    /// Acquires several permits together, all or none, and returns one guard for all of them. Takes one
    /// request for each 1,000 permits.
    ///
    /// # Errors
    /// [`AcquireError::Core`] with
    ///
    /// - `InvalidInput` if `permits` is 0 or exceeds the limit; the error names both numbers. With a fixed
    ///   limit the call fails immediately. If a shared limit is lowered below `permits` meanwhile, the call
    ///   fails in its turn, so that the clients behind it get the free permits. While a shared limit is 0,
    ///   the call waits;
    /// - `TooManyEphemerals` if the session would own more nodes than allowed: some 9,000 by default.
    ///
    /// Otherwise those of [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    /// This method is cancel safe, but cancelling it loses your place in the queue.
    pub fn acquire_many(
        &self,
        permits: u32,
    ) -> impl Future<Output = Result<Permit, AcquireError>> + Send + use<> {
        self.enter(permits, Progress::unrecorded())
    }

    fn enter(
        &self,
        permits: u32,
        progress: Progress,
    ) -> impl Future<Output = Result<Permit, AcquireError>> + Send + use<> {
        let semaphore = self.clone();
        async move { Box::pin(semaphore.wait_for(permits, progress)).await.in_operation("acquire") }
    }

    async fn wait_for(&self, permits: u32, progress: Progress) -> Result<Permit, AcquireError> {
        self.check(permits)?;
        self.check_before_entering(permits).await?;
        let wanted = Wanted { path: &self.path, permits, limit: self.permits.limit() };
        let turn = Box::pin(self.wait_for_turn(permits, &progress));
        own_hold::logged(self.permits.line(), Some(wanted), turn).await
    }

    /// Waits for the turn and takes the permits, again and again if the turn or the permits are lost.
    async fn wait_for_turn(&self, permits: u32, progress: &Progress) -> Result<Permit, AcquireError> {
        loop {
            let turn = wait_in(&self.turns, progress).await?;
            // If the turn is lost, two clients might wait for each other's tickets, so both start again.
            if let Ok(taken) = turn.run(self.take(permits, &turn)).await
                && let Some(holds) = taken?
            {
                return Ok(Permit::new(holds));
            }
        }
    }

    /// Checks the limit before joining the line. Waits out outages.
    async fn check_before_entering(&self, permits: u32) -> Result<(), AcquireError> {
        while let Err(error) = self.permits.check_limit(permits).await {
            self.turns.wait_out(error).await?;
        }
        Ok(())
    }

    /// Takes the permits in its turn. Waits out outages. Returns `None` if the tickets are lost.
    async fn take(&self, permits: u32, turn: &Hold) -> Result<Option<HoldSet>, AcquireError> {
        loop {
            match self.permits.take(permits, turn).await {
                Err(error) => wait_out(self.permits.line(), error).await?,
                taken => return taken,
            }
        }
    }

    /// Acquires a permit, like [`acquire`](Self::acquire), if one is available and no client waits. Reads
    /// first, and writes only if a permit is available.
    ///
    /// # Errors
    /// [`AcquireError::Busy`] if no permit is available or a client waits; `Timeout` if the whole call took
    /// longer than the operation timeout; otherwise those of [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn try_acquire(&self) -> impl Future<Output = Result<Permit, AcquireError>> + Send + use<> {
        self.try_acquire_many(1)
    }

    /// Acquires permits, like [`acquire_many`](Self::acquire_many), if enough are available and no client
    /// waits.
    ///
    /// # Errors
    /// [`AcquireError::Busy`] if too few permits are available or a client waits; `Timeout` if the whole call
    /// took longer than the operation timeout; otherwise those of [`acquire_many`](Self::acquire_many).
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn try_acquire_many(
        &self,
        permits: u32,
    ) -> impl Future<Output = Result<Permit, AcquireError>> + Send + use<> {
        let semaphore = self.clone();
        async move {
            semaphore.check(permits)?;
            let progress = Progress::recorded();
            in_time(&semaphore.turns, &progress, semaphore.attempts(permits, &progress)).await
        }
    }

    async fn attempts(&self, permits: u32, progress: &Progress) -> Result<Permit, AcquireError> {
        self.permits.check_limit(1).await?;
        loop {
            if !self.permits.are_free(permits).await? {
                return Err(self.busy(progress).await);
            }
            let turn = match try_line(self.turns.clone(), progress.clone()).await {
                Err(AcquireError::Busy(_)) => return Err(self.busy(progress).await),
                turn => turn?,
            };
            // A turn that was lost meanwhile says nothing about the permits, so the loop checks again.
            let Ok(taken) = turn.run(Box::pin(self.permits.try_take(permits, &turn))).await else { continue };
            match taken? {
                PermitsTaken::All(holds) => return Ok(Permit::new(holds)),
                PermitsTaken::Full => return Err(self.busy(progress).await),
                PermitsTaken::Lost => {}
            }
        }
    }

    /// Acquires a permit, like [`acquire`](Self::acquire), waiting at most `timeout` for the whole call.
    ///
    /// # Errors
    /// [`AcquireError::TimedOut`] if the timeout expired: the tickets are being removed. Otherwise those of
    /// [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    /// This method is cancel safe, but cancelling it loses your place in the queue.
    pub fn acquire_timeout(
        &self,
        timeout: Duration,
    ) -> impl Future<Output = Result<Permit, AcquireError>> + Send + use<> {
        self.acquire_many_timeout(1, timeout)
    }

    /// Acquires permits, like [`acquire_many`](Self::acquire_many), waiting at most `timeout` for the whole
    /// call.
    ///
    /// # Errors
    /// [`AcquireError::TimedOut`] if the timeout expired: the tickets are being removed. Otherwise those of
    /// [`acquire_many`](Self::acquire_many).
    ///
    /// # Cancel safety
    /// This method is cancel safe, but cancelling it loses your place in the queue.
    pub fn acquire_many_timeout(
        &self,
        permits: u32,
        timeout: Duration,
    ) -> impl Future<Output = Result<Permit, AcquireError>> + Send + use<> {
        let progress = Progress::recorded();
        let acquire = self.enter(permits, progress.clone());
        let target = Target::semaphore(&self.path, self.turns.clone(), self.permits.line().clone());
        with_timeout(timeout, target, progress, acquire)
    }

    /// Returns the error for too few permits or a waiting client. The error names a holder of a permit, if
    /// one can be read.
    async fn busy(&self, progress: &Progress) -> AcquireError {
        let line = self.permits.line();
        progress.refuse(NotAcquired::at(&self.path), line.client(), Box::pin(line.first())).await
    }

    fn check(&self, permits: u32) -> Result<(), Error> {
        match self.permits.limit() {
            _ if permits == 0 => Err(Error::invalid_input("acquire", "permits 0 must be at least 1")),
            limit @ Limit::Fixed(permitted) => limit.check(permits, *permitted),
            Limit::Shared(_) => Ok(()),
        }
    }
}

impl fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_handle(f, "Semaphore", self.path(), self.turns.client()).finish_non_exhaustive()
    }
}
