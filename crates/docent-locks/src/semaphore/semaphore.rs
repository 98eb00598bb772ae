use super::SharedLimit;
use super::permits::{Permits, PermitsTaken};
use super::shared_limit::Limit;
use crate::acquire::{in_time, try_line, wait, wait_out, with_timeout};
use crate::{AcquireError, Permit};
use docent_core::recipe::{HoldSet, Line, NodePath};
use docent_core::{Client, Error, Participant, Role};
use std::future::Future;
use std::time::Duration;

/// Text before the numbers below `locks` and `leases`, as in Curator's `InterProcessSemaphoreV2`.
const LOCK: &str = "lock-";
const LEASE: &str = "lease-";

/// Semaphore: at most so many permits at a time, across processes.
///
/// # Expected flow
/// `acquire` waits for its turn in a line of tickets below `locks`, like a mutex. The client that has the
/// turn takes tickets below `leases`, one for each permit, waits until they are among the first so many, and
/// passes the turn on. The layout is that of Curator's `InterProcessSemaphoreV2`, and both count each other's
/// permits.
///
/// # Guarantees
/// - In the order of transactions there are never more permits than the limit. All who use a path must give
///   the same limit, or share a [`SharedLimit`]; when that is lowered, permits that are out stay out.
/// - First come, first served, also for a client that wants many: permits that come free are kept for the
///   first in the line.
/// - Several permits are acquired together or not at all.
/// - A release wakes one waiter: only the waiter that has the turn watches the permits. A client that crashes
///   blocks nobody for longer than its session.
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
#[derive(Debug, Clone)]
pub struct Semaphore {
    path: String,
    turns: Line,
    permits: Permits,
}

impl Semaphore {
    /// The semaphore at `path` with so many permits. Parents are created on demand, as containers, which the
    /// servers delete when they are empty.
    ///
    /// # Errors
    /// `InvalidInput` when the path breaks a rule, or there is no permit.
    pub fn new(client: &Client, path: &str, permits: u32) -> Result<Self, Error> {
        if permits == 0 {
            return Err(Error::invalid_input("semaphore", "permits 0 must be at least 1"));
        }
        Self::with(client, path, Limit::Fixed(permits))
    }

    /// The semaphore at `path` with as many permits as `limit` says, at any time. While that is 0 everybody
    /// waits.
    ///
    /// # Errors
    /// `InvalidInput` when the path breaks a rule.
    pub fn with_limit(client: &Client, path: &str, limit: &SharedLimit) -> Result<Self, Error> {
        Self::with(client, path, Limit::Shared(limit.clone()))
    }

    fn with(client: &Client, path: &str, limit: Limit) -> Result<Self, Error> {
        // An error names the path as it was given.
        let path = NodePath::new("semaphore", path)?;
        let leases = Line::new(client, &format!("{path}/leases"), "semaphore", LEASE)?;
        Ok(Self {
            turns: Line::new(client, &format!("{path}/locks"), "semaphore_turn", LOCK)?,
            permits: Permits::new(client, leases, limit),
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
    /// [`AcquireError::Core`] with `NoAuth`, `AuthFailed`, `ShortLease`, `SequenceExhausted`,
    /// `EnsembleRolledBack`, `Closed`, and with `InvalidInput` when the shared limit is not a number.
    ///
    /// # Cancel safety
    /// This method is cancel safe, but you lose your place in the line.
    pub fn acquire(&self) -> impl Future<Output = Result<Permit, AcquireError>> + Send + use<> {
        self.acquire_many(1)
    }

    /// Waits for several permits at once, all or none: one guard for all of them.
    ///
    /// # Errors
    /// [`AcquireError::Core`] with `InvalidInput` for no permit, or more than the semaphore has; with a
    /// shared limit it waits for that to be raised. Else as [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    /// This method is cancel safe, but you lose your place in the line.
    pub fn acquire_many(
        &self,
        permits: u32,
    ) -> impl Future<Output = Result<Permit, AcquireError>> + Send + use<> {
        let semaphore = self.clone();
        async move {
            semaphore.check(permits)?;
            loop {
                let turn = wait(semaphore.turns.clone()).await?;
                // Without the turn two may wait for each other: both begin again.
                if let Ok(taken) = turn.run(Box::pin(semaphore.take(permits))).await
                    && let Some(holds) = taken?
                {
                    return Ok(Permit::new(holds));
                }
            }
        }
    }

    /// Takes so many permits in its turn, through outages; `None` when the tickets for them are gone.
    async fn take(&self, permits: u32) -> Result<Option<HoldSet>, AcquireError> {
        loop {
            match self.permits.take(permits).await {
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
            in_time(&semaphore.turns, semaphore.attempts(permits)).await
        }
    }

    async fn attempts(&self, permits: u32) -> Result<Permit, AcquireError> {
        loop {
            if !self.permits.are_free(permits).await? {
                return Err(AcquireError::Busy);
            }
            let turn = try_line(self.turns.clone()).await?;
            // A turn that was lost on the way says nothing of permits: it looks again.
            let Ok(taken) = turn.run(Box::pin(self.permits.try_take(permits))).await else { continue };
            match taken? {
                PermitsTaken::All(holds) => return Ok(Permit::new(holds)),
                PermitsTaken::Full => return Err(AcquireError::Busy),
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
        with_timeout(timeout, self.acquire())
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
        with_timeout(timeout, self.acquire_many(permits))
    }

    /// Everybody with a ticket: one entry for each permit that is held or about to be, then the waiters for
    /// their turn.
    ///
    /// # Errors
    /// `NoAuth`, `Timeout`, `Closed`, and `InvalidInput` when the shared limit is not a number.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn participants(&self) -> impl Future<Output = Result<Vec<Participant>, Error>> + Send + use<> {
        let semaphore = self.clone();
        async move { semaphore.everybody().await }
    }

    async fn everybody(&self) -> Result<Vec<Participant>, Error> {
        let (limit, leases) = (self.permits.limit().get().await?, self.permits.line().participants().await?);
        let mut turns = self.turns.participants().await?;
        let mut all = leases;
        for (place, participant) in all.iter_mut().enumerate() {
            participant.holds = place < limit as usize;
            participant.role = Role::Shared;
        }
        // The client that has the turn has its tickets for permits already.
        let is_listed =
            |turn: &Participant| all.iter().any(|one| one.session_id == turn.session_id && !one.holds);
        if turns.first().is_some_and(is_listed) {
            turns.remove(0);
        }
        all.extend(turns.into_iter().map(|mut turn| {
            turn.holds = false;
            turn.role = Role::Shared;
            turn
        }));
        Ok(all)
    }

    /// Asks a participant to give up its permit: the guard's [`revoked`](Permit::revoked) resolves, and it
    /// may ignore that.
    ///
    /// # Errors
    /// `InvalidInput` for a participant that still waits for its turn; `NoNode` when it has left, `NoAuth`,
    /// `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe: asking again does no harm.
    pub fn revoke(
        &self,
        participant: &Participant,
    ) -> impl Future<Output = Result<(), Error>> + Send + use<> {
        let (semaphore, participant) = (self.clone(), participant.clone());
        async move { semaphore.ask_back(&participant).await }
    }

    async fn ask_back(&self, participant: &Participant) -> Result<(), Error> {
        if !participant.name.contains(LEASE) {
            let detail = format!("participant {:?} must have a permit to give up", participant.name);
            return Err(Error::invalid_input("revoke", detail));
        }
        self.permits.line().revoke(participant).await
    }

    fn check(&self, permits: u32) -> Result<(), Error> {
        if permits == 0 {
            return Err(Error::invalid_input("acquire", "permits 0 must be at least 1"));
        }
        match self.permits.limit() {
            Limit::Fixed(limit) if permits > *limit => {
                let detail = format!("permits {permits} must be at most the semaphore's {limit}");
                Err(Error::invalid_input("acquire", detail))
            }
            _ => Ok(()),
        }
    }
}
