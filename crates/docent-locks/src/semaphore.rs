use crate::acquire::{attempt, wait, within};
use crate::error::after_wait;
use crate::shared_limit::Limit;
use crate::{AcquireError, Permit, SharedLimit};
use docent_core::recipe::{Hold, Line, Ticket};
use docent_core::{Client, Error, Participant, Role};
use futures_util::StreamExt;
use futures_util::future::try_join_all;
use std::future::Future;
use std::time::Duration;

/// What stands before the numbers below `locks` and `leases`, as in Curator's `InterProcessSemaphoreV2`.
const LOCK: &str = "lock-";
const LEASE: &str = "lease-";

/// At most so many permits at a time, across processes.
///
/// # Expected flow
/// `acquire` waits for its turn in a line of tickets below `locks`, like a mutex. Whose turn it is takes tickets below `leases`,
/// one for each permit, waits until they are among the first so many, and lets the next one have its turn. The layout is that
/// of Curator's `InterProcessSemaphoreV2`, and both count each other's permits.
///
/// # Guarantees
/// - In the order of transactions there are never more permits than the limit. All who use a path must give the same limit, or
///   share a [`SharedLimit`]; when that is lowered, permits that are out stay out.
/// - First come, first served, also by those who want many: what comes free is kept for whoever is first.
/// - Several permits are acquired together or not at all.
/// - A release wakes one waiter: only the one whose turn it is watches the permits. One that crashes blocks nobody for longer than its
///   session.
/// - A permit that is cut off, paused or starved knows that it is lost as [`Mutex`](crate::Mutex)'s guard does.
///
/// # Assumptions
/// The session timeout is at least four ticks of the server, and the clock runs whenever the world does.
///
/// # What happens
/// - *Link down:* a permit is held until its lease runs out. A waiter keeps its place in the line; if it is its turn and the lease
///   runs out, it goes to the end.
/// - *Session over:* permits are lost; a waiter goes to the end of the line.
/// - *Drop or cancel:* tickets and permits are deleted in the background, whatever had been sent.
///
/// # Caveats
/// Permits have no fence: a resource cannot tell a late holder from others. They are not reentrant, and an owner that waits for more
/// while it has some may wait for itself: acquire what is needed with [`acquire_many`](Self::acquire_many).
#[derive(Debug, Clone)]
pub struct Semaphore {
    client: Client,
    path: String,
    turns: Line,
    leases: Line,
    limit: Limit,
}

impl Semaphore {
    /// The semaphore at `path` with so many permits. Parents are created on demand, as containers, which the servers delete when
    /// they are empty.
    ///
    /// # Errors
    /// `InvalidInput` when the path breaks a rule, or there is no permit.
    pub fn new(client: &Client, path: &str, permits: u32) -> Result<Self, Error> {
        if permits == 0 {
            return Err(Error::invalid_input("semaphore", "permits 0 must be at least 1"));
        }
        Self::with(client, path, Limit::Fixed(permits))
    }

    /// The semaphore at `path` with as many permits as `limit` says, at any time. While that is 0 everybody waits.
    ///
    /// # Errors
    /// `InvalidInput` when the path breaks a rule.
    pub fn with_limit(client: &Client, path: &str, limit: &SharedLimit) -> Result<Self, Error> {
        Self::with(client, path, Limit::Shared(limit.clone()))
    }

    fn with(client: &Client, path: &str, limit: Limit) -> Result<Self, Error> {
        // The path itself is checked, so that an error names what was given.
        Line::new(client, path, "semaphore", LEASE)?;
        Ok(Self {
            client: client.clone(),
            path: path.to_owned(),
            turns: Line::new(client, &format!("{path}/locks"), "semaphore_turn", LOCK)?,
            leases: Line::new(client, &format!("{path}/leases"), "semaphore", LEASE)?,
            limit,
        })
    }

    /// The path, as it was given.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Waits for a permit, however long that takes.
    ///
    /// # Errors
    /// [`AcquireError::Core`] with `Timeout` when no server could be reached to take a ticket, with `NoAuth`, `ShortLease`,
    /// `SequenceExhausted`, `Closed`, and with `InvalidInput` when the shared limit is not a number.
    ///
    /// # Cancel safety
    /// This method is cancel safe, but you lose your place in the line.
    pub fn acquire(&self) -> impl Future<Output = Result<Permit, AcquireError>> + Send + use<> {
        self.acquire_many(1)
    }

    /// Waits for several permits at once, all or none: one guard for all of them.
    ///
    /// # Errors
    /// [`AcquireError::Core`] with `InvalidInput` for no permit, or more than the semaphore has; with a shared limit it waits for
    /// that to be raised. Else as [`acquire`](Self::acquire).
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
                if let Ok(taken) = turn.run(semaphore.take(permits)).await
                    && let Some(holds) = taken?
                {
                    return Permit::new(holds);
                }
            }
        }
    }

    /// As [`acquire`](Self::acquire) if there is a permit now and nobody waits. Looks first and writes only then.
    ///
    /// # Errors
    /// [`AcquireError::Busy`] when there is none or somebody waits; else as [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn try_acquire(&self) -> impl Future<Output = Result<Permit, AcquireError>> + Send + use<> {
        self.try_acquire_many(1)
    }

    /// As [`acquire_many`](Self::acquire_many) if there are so many permits now and nobody waits.
    ///
    /// # Errors
    /// [`AcquireError::Busy`] when there are not or somebody waits; else as [`acquire_many`](Self::acquire_many).
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
            let (limit, out) = (semaphore.limit.get().await?, semaphore.leases.count().await?);
            if out + permits as usize > limit as usize {
                return Err(AcquireError::Busy);
            }
            let turn = attempt(semaphore.turns.clone()).await?;
            let taken = turn.run(semaphore.try_take(permits)).await;
            Permit::new(taken.unwrap_or(Ok(None))?.ok_or(AcquireError::Busy)?)
        }
    }

    /// As [`acquire`](Self::acquire), for at most `timeout`, which bounds the whole call.
    ///
    /// # Errors
    /// [`AcquireError::TimedOut`] when that was not enough: no ticket is left. Else as [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    /// This method is cancel safe, but you lose your place in the line.
    pub fn acquire_timeout(
        &self,
        timeout: Duration,
    ) -> impl Future<Output = Result<Permit, AcquireError>> + Send + use<> {
        within(timeout, self.acquire())
    }

    /// As [`acquire_many`](Self::acquire_many), for at most `timeout`, which bounds the whole call.
    ///
    /// # Errors
    /// [`AcquireError::TimedOut`] when that was not enough: no ticket is left. Else as [`acquire_many`](Self::acquire_many).
    ///
    /// # Cancel safety
    /// This method is cancel safe, but you lose your place in the line.
    pub fn acquire_many_timeout(
        &self,
        permits: u32,
        timeout: Duration,
    ) -> impl Future<Output = Result<Permit, AcquireError>> + Send + use<> {
        within(timeout, self.acquire_many(permits))
    }

    /// Everybody with a ticket: one entry for each permit that is held or about to be, then those who wait for their turn.
    ///
    /// # Errors
    /// `NoAuth`, `Timeout`, `Closed`, and `InvalidInput` when the shared limit is not a number.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn participants(&self) -> Result<Vec<Participant>, Error> {
        let (limit, leases) = (self.limit.get().await?, self.leases.participants().await?);
        let mut turns = self.turns.participants().await?;
        let mut all = leases;
        for (place, participant) in all.iter_mut().enumerate() {
            participant.holds = place < limit as usize;
            participant.role = Role::Shared;
        }
        // Whose turn it is has its tickets for permits already.
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

    /// Asks a participant to give up its permit: the guard's [`revoked`](Permit::revoked) resolves, and it may ignore that.
    ///
    /// # Errors
    /// `InvalidInput` for a participant that still waits for its turn; `NoNode` when it has left, `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe: asking again does no harm.
    pub async fn revoke(&self, participant: &Participant) -> Result<(), Error> {
        if !participant.name.contains(LEASE) {
            let detail = format!("participant {:?} must have a permit to give up", participant.name);
            return Err(Error::invalid_input("revoke", detail));
        }
        self.leases.revoke(participant).await
    }

    fn check(&self, permits: u32) -> Result<(), Error> {
        if permits == 0 {
            return Err(Error::invalid_input("acquire", "permits 0 must be at least 1"));
        }
        match self.limit {
            Limit::Fixed(limit) if permits > limit => {
                let detail = format!("permits {permits} must be at most the semaphore's {limit}");
                Err(Error::invalid_input("acquire", detail))
            }
            _ => Ok(()),
        }
    }

    /// Takes tickets for so many permits and waits until they count; `None` when they are gone.
    async fn take(&self, permits: u32) -> Result<Option<Vec<Hold>>, AcquireError> {
        let tickets = self.draw(permits).await?;
        if !self.fit_now(&tickets).await? && !self.until_they_fit(&tickets).await? {
            return Ok(None);
        }
        claim(tickets).await
    }

    async fn try_take(&self, permits: u32) -> Result<Option<Vec<Hold>>, AcquireError> {
        let tickets = self.draw(permits).await?;
        if self.fit_now(&tickets).await? { claim(tickets).await } else { Ok(None) }
    }

    async fn draw(&self, permits: u32) -> Result<Vec<Ticket>, Error> {
        try_join_all((0..permits).map(|_| self.leases.draw(None))).await
    }

    /// True when the listings made with the tickets show that they are among the first.
    async fn fit_now(&self, tickets: &[Ticket]) -> Result<bool, Error> {
        let limit = self.limit.get().await? as usize;
        Ok(tickets.iter().all(|ticket| ticket.ahead().is_some_and(|ahead| ahead < limit)))
    }

    /// Waits until the tickets are among the first, which permits that come free or a higher limit make them; false when they
    /// are gone.
    async fn until_they_fit(&self, tickets: &[Ticket]) -> Result<bool, Error> {
        let mut leases = self.client.watch_children(self.leases.path())?;
        let mut limits = self.limit.changes()?;
        let (mut names, mut limit): (Option<Vec<String>>, Option<usize>) = (None, None);
        loop {
            tokio::select! {
                children = leases.next() => match children.transpose()?.flatten() {
                    Some(children) => names = Some(children.names),
                    None => return Ok(false),
                },
                value = limits.next() => match value.transpose()? {
                    Some(value) => limit = Some(value as usize),
                    None => return Ok(false),
                },
            }
            let (Some(names), Some(seen)) = (&names, limit) else { continue };
            let Some(ahead) = self.ahead_of(tickets, names) else { return Ok(false) };
            if ahead >= seen {
                continue;
            }
            if planted!(StaleLimit) {
                return Ok(true);
            }
            // It may have been lowered before the permits came free that this listing lacks: what it is read as after that decides.
            let mut fresh = self.limit.changes()?;
            let Some(value) = fresh.next().await.transpose()? else { return Ok(false) };
            if ahead < value as usize {
                return Ok(true);
            }
            (limits, limit) = (fresh, Some(value as usize));
        }
    }

    /// How many are ahead of the last of the tickets; `None` when one is gone.
    fn ahead_of(&self, tickets: &[Ticket], names: &[String]) -> Option<usize> {
        let ahead = tickets.iter().map(|ticket| self.leases.ahead_of(ticket, names));
        ahead.collect::<Option<Vec<_>>>()?.into_iter().max()
    }
}

/// Holds what the tickets are for; `None` when one is gone.
async fn claim(tickets: Vec<Ticket>) -> Result<Option<Vec<Hold>>, AcquireError> {
    match try_join_all(tickets.into_iter().map(Ticket::claim)).await {
        Ok(holds) => Ok(Some(holds)),
        Err(error) => after_wait(error).map_or(Ok(None), Err),
    }
}
