use super::node::SemaphoreNode;
use super::permits::{Permits, PermitsTaken};
use super::shared_limit::Limit;
use super::{SemaphoreBuilder, SharedLimit};
use crate::acquire::{in_time, try_line, wait, wait_out, with_timeout};
use crate::progress::{Progress, Target};
use crate::{AcquireError, NotAcquired, Permit};
use docent_core::recipe::{Hold, HoldSet, Line, NodePath, RecipeKind, debug_handle};
use docent_core::{Client, Error};
use std::fmt;
use std::future::Future;
use std::time::Duration;

static KIND: RecipeKind = RecipeKind::new("semaphore", "acquire");
/// The line in which callers wait for permits.
static TURN: RecipeKind = RecipeKind::new("semaphore_turn", "acquire");

/// Text before the numbers below `locks` and `leases`, as in Curator's `InterProcessSemaphoreV2`.
const LOCK: &str = "lock-";
pub(super) const LEASE: &str = "lease-";

/// Semaphore: at most so many permits at a time, across processes.
///
/// # Expected flow
/// `acquire` waits for its turn in a line of tickets below `locks`, like a mutex. The client that has the
/// turn takes tickets below `leases`, one for each permit and up to 1,000 in one request, waits until they
/// are among the first so many, and passes the turn on. The layout is that of Curator's
/// `InterProcessSemaphoreV2`, and both count each other's permits.
///
/// # Guarantees
/// - In the order of transactions there are never more permits than the limit. All who use a path must give
///   the same limit, or share a [`SharedLimit`]; when that is lowered, permits that are out stay out. A fixed
///   limit is kept in the semaphore's node, as kazoo's is, and who has another one is refused; Curator does
///   not look.
/// - First come, first served, also for a client that wants many: permits that come free are kept for the
///   first in the line.
/// - Several permits are acquired together or not at all.
/// - A release wakes one waiter: only the waiter that has the turn watches the permits. A turn that ends
///   wakes the next one, and the one behind it, which looks ahead. A client that crashes blocks nobody for
///   longer than its session.
/// - A permit that is cut off, paused or starved knows that it is lost as [`Mutex`](crate::Mutex)'s guard
///   does.
///
/// # Assumptions
/// The session timeout is at least four ticks of the server, and the clock runs whenever the world does.
///
/// # What happens
/// - *Link down:* a permit is held until its lease runs out. A waiter keeps its place in the line; if it is
///   its turn and the lease runs out, it goes to the end.
/// - *Session over:* permits are lost; a waiter goes to the end of the line.
/// - *Drop or cancel:* tickets and permits are deleted in the background, whatever had been sent.
///
/// # Caveats
/// Permits have no fence: a resource cannot tell a late holder from others. They are not reentrant, and an
/// owner that waits for more while it has some may wait for itself: acquire what is needed with
/// [`acquire_many`](Self::acquire_many).
#[derive(Clone)]
pub struct Semaphore {
    pub(super) path: String,
    pub(super) turns: Line,
    pub(super) permits: Permits,
}

impl Semaphore {
    /// The semaphore at `path` with so many permits. Parents are created on demand, as containers, which the
    /// servers delete when they are empty.
    ///
    /// # Errors
    /// `InvalidInput` when the path breaks a rule, or there is no permit.
    pub fn new(client: &Client, path: &str, permits: u32) -> Result<Self, Error> {
        Self::builder(client, path).permits(permits).build()
    }

    /// Prepares a semaphore with settings of its own.
    pub fn builder(client: &Client, path: &str) -> SemaphoreBuilder {
        SemaphoreBuilder::new(client, path)
    }

    /// The semaphore at `path` with as many permits as `limit` says, at any time. While that is 0 everybody
    /// waits.
    ///
    /// # Errors
    /// `InvalidInput` when the path breaks a rule.
    pub fn with_limit(client: &Client, path: &str, limit: &SharedLimit) -> Result<Self, Error> {
        Self::builder(client, path).limit(limit).build()
    }

    pub(super) fn with(client: &Client, path: &str, limit: Limit, checks: bool) -> Result<Self, Error> {
        // An error names the path as it was given.
        let path = NodePath::new("semaphore", path)?;
        let fixed = if let Limit::Fixed(permits) = limit { Some(permits) } else { None };
        let node = SemaphoreNode::new(client, &path, fixed, checks);
        let leases = Line::new(client, &format!("{path}/leases"), &KIND, LEASE)?;
        Ok(Self {
            turns: Line::new(client, &format!("{path}/locks"), &TURN, LOCK)?,
            permits: Permits::new(client, node, leases, limit),
            path: path.into(),
        })
    }

    /// The path, as it was given.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Waits for a permit, however long that takes, also through an outage of the servers.
    ///
    /// # Errors
    /// [`AcquireError::Core`] with `InvalidInput` when others have another fixed limit at the path, which the
    /// error names, or the shared limit is not a number; with `MixedKinds` when contenders of another kind
    /// stand at the path; `NoAuth`, also for the semaphore's own node, `AuthFailed`, `ShortLease`,
    /// `SequenceExhausted`, `EnsembleRolledBack`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe, but you lose your place in the line.
    pub fn acquire(&self) -> impl Future<Output = Result<Permit, AcquireError>> + Send + use<> {
        self.acquire_many(1)
    }

    /// Waits for several permits at once, all or none: one guard for all of them. It takes a request for each
    /// 1,000 of them.
    ///
    /// # Errors
    /// [`AcquireError::Core`] with `InvalidInput` for no permit, or more than the semaphore has: at once, or,
    /// where a shared limit was lowered below their number meanwhile, when its turn comes or as soon as it is
    /// seen in its turn, so that those behind get the permits that are free. The error names both numbers.
    /// While a shared limit is 0 it waits. With `TooManyEphemerals` for more nodes than a session may own,
    /// some thousands. Else as [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    /// This method is cancel safe, but you lose your place in the line.
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
        async move { Box::pin(semaphore.wait_for(permits, progress)).await }
    }

    async fn wait_for(&self, permits: u32, progress: Progress) -> Result<Permit, AcquireError> {
        self.check(permits)?;
        self.look(permits).await?;
        loop {
            let turn = wait(self.turns.clone(), progress.clone()).await?;
            // Without the turn two may wait for each other: both begin again.
            if let Ok(taken) = turn.run(self.take(permits, &turn)).await
                && let Some(holds) = taken?
            {
                return Ok(Permit::new(holds));
            }
        }
    }

    /// Looks before it stands in the line, through outages.
    async fn look(&self, permits: u32) -> Result<(), AcquireError> {
        while let Err(error) = self.permits.look(permits).await {
            self.turns.wait_out(error).await?;
        }
        Ok(())
    }

    /// Takes so many permits in its turn, through outages; `None` when the tickets for them are gone.
    async fn take(&self, permits: u32, turn: &Hold) -> Result<Option<HoldSet>, AcquireError> {
        loop {
            match self.permits.take(permits, turn).await {
                Err(error) => wait_out(self.permits.line(), error).await?,
                taken => return taken,
            }
        }
    }

    /// As [`acquire`](Self::acquire) if there is a permit now and nobody waits. Looks first and writes only
    /// then.
    ///
    /// # Errors
    /// [`AcquireError::Busy`] when there is none or somebody waits; `Timeout` when it took longer than the
    /// operation timeout in all; else as [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn try_acquire(&self) -> impl Future<Output = Result<Permit, AcquireError>> + Send + use<> {
        self.try_acquire_many(1)
    }

    /// As [`acquire_many`](Self::acquire_many) if there are so many permits now and nobody waits.
    ///
    /// # Errors
    /// [`AcquireError::Busy`] when there are not or somebody waits; `Timeout` as
    /// [`try_acquire`](Self::try_acquire); else as [`acquire_many`](Self::acquire_many).
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
        self.permits.look(1).await?;
        loop {
            if !self.permits.are_free(permits).await? {
                return Err(self.busy(progress).await);
            }
            let turn = match try_line(self.turns.clone(), progress.clone()).await {
                Err(AcquireError::Busy(_)) => return Err(self.busy(progress).await),
                turn => turn?,
            };
            // A turn that was lost on the way says nothing of permits: it looks again.
            let Ok(taken) = turn.run(Box::pin(self.permits.try_take(permits, &turn))).await else { continue };
            match taken? {
                PermitsTaken::All(holds) => return Ok(Permit::new(holds)),
                PermitsTaken::Full => return Err(self.busy(progress).await),
                PermitsTaken::Gone => {}
            }
        }
    }

    /// As [`acquire`](Self::acquire), for at most `timeout`, which bounds the whole call.
    ///
    /// # Errors
    /// [`AcquireError::TimedOut`] when that was not enough: its tickets are being removed. Else as
    /// [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    /// This method is cancel safe, but you lose your place in the line.
    pub fn acquire_timeout(
        &self,
        timeout: Duration,
    ) -> impl Future<Output = Result<Permit, AcquireError>> + Send + use<> {
        self.acquire_many_timeout(1, timeout)
    }

    /// As [`acquire_many`](Self::acquire_many), for at most `timeout`, which bounds the whole call.
    ///
    /// # Errors
    /// [`AcquireError::TimedOut`] when that was not enough: its tickets are being removed. Else as
    /// [`acquire_many`](Self::acquire_many).
    ///
    /// # Cancel safety
    /// This method is cancel safe, but you lose your place in the line.
    pub fn acquire_many_timeout(
        &self,
        permits: u32,
        timeout: Duration,
    ) -> impl Future<Output = Result<Permit, AcquireError>> + Send + use<> {
        let progress = Progress::recorded();
        let acquire = self.enter(permits, progress.clone());
        with_timeout(timeout, self.target(), progress, acquire)
    }

    fn target(&self) -> Target {
        Target::semaphore(&self.path, self.turns.clone(), self.permits.line().clone())
    }

    /// Error while there are not enough permits, or somebody waits, with one who has a permit where that can
    /// be read.
    async fn busy(&self, progress: &Progress) -> AcquireError {
        progress.refuse(NotAcquired::at(&self.path), Box::pin(self.permits.line().first())).await
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
