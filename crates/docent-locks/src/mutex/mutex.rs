use super::MutexBuilder;
use crate::acquire::{enter, try_enter, with_timeout};
use crate::progress::Progress;
use crate::{AcquireError, MutexGuard, Owner};
use docent_core::recipe::{InOperation, Line, debug_handle};
use docent_core::{Client, Error, Participant};
use std::fmt;
use std::future::Future;
use std::time::Duration;

/// A fair lock shared by many processes, reentrant by [`Owner`].
///
/// # Expected flow
/// `acquire` takes a ticket (an ephemeral sequential node) below the lock's path. The ticket with the lowest
/// number holds the lock; every other ticket waits for its predecessor. A release deletes the node, so that
/// the next ticket holds the lock. The layout is that of Curator's `InterProcessMutex`, and both exclude each
/// other.
///
/// # Guarantees
/// - At most one guard holds the lock in the order of transactions, and fences increase from holder to
///   holder.
/// - A guard whose client is disconnected or starved learns that it is lost before the servers give the lock
///   to the next contender. A paused process learns of the loss at its first check after the pause, and the
///   fence protects the resource until then.
/// - First come, first served, in the order in which the servers number the tickets.
/// - A release wakes two waiters: the next holder, and the waiter behind it, which reads the line again.
///
/// # Assumptions
/// The session timeout is at least four server ticks, and the clock does not stop while the machine is
/// suspended.
///
/// # What happens
/// - *Connection lost:* a holder keeps the lock until its [lease](docent_core::Held::lease_left) runs out; a
///   waiter keeps its place. If the client reconnects and renews the lease in time, the guard stays held.
/// - *Session expired:* a holder's guard is lost; a waiter takes a new ticket at the end of the line.
/// - *Drop or cancel:* the ticket or lock is deleted in the background, even if its create was still in
///   flight.
///
/// # Tasks of one process
/// Tasks that contend for a mutex behave like any other contenders: each hand-off goes through the servers.
/// With eight contenders, an acquire and its release take up to six requests. If many tasks of one process
/// contend, use a [`SharedMutex`](crate::SharedMutex).
///
/// # Caveats
/// A lock is not suitable for mutual exclusion at a resource that cannot check fences and must never have two
/// writers: no lock service can guarantee that to a process that may be paused.
///
/// Kazoo's locks share the line only if both sides are [configured to](MutexBuilder::neighbours). If the path
/// has contenders of another kind (a read/write lock, a semaphore, an election with another layout, or a
/// kazoo lock that is not configured) and they came first, Docent's contender is refused with
/// [`MixedKinds`](docent_core::ErrorKind::MixedKinds).
///
/// Source: "Locks" in ZooKeeper's recipes, with the changes described for
/// [`Ticket::wait`](docent_core::recipe::Ticket::wait).
#[derive(Clone)]
pub struct Mutex {
    pub(crate) line: Line,
}

impl Mutex {
    /// Creates a handle for the mutex at `path`. Missing parents are created on demand as containers, which
    /// the servers delete when they are empty.
    ///
    /// # Errors
    /// `InvalidInput` if the path breaks a rule.
    pub fn new(client: &Client, path: &str) -> Result<Self, Error> {
        Self::builder(client, path).build()
    }

    /// Returns a builder for a mutex with custom settings.
    pub fn builder(client: &Client, path: &str) -> MutexBuilder {
        MutexBuilder::new(client, path)
    }

    /// Creates the mutex of this line.
    pub(crate) fn of(line: Line) -> Self {
        Self { line }
    }

    fn enter(
        &self,
        owner: Option<Owner>,
        progress: Progress,
    ) -> impl Future<Output = Result<MutexGuard, AcquireError>> + Send + use<> {
        let acquire = enter(owner, self.line.clone().into(), progress);
        async move { Ok(MutexGuard::new(acquire.await?.own()?)) }
    }

    /// Returns the path that was passed to the constructor.
    pub fn path(&self) -> &str {
        self.line.path()
    }

    /// Acquires the lock, waiting as long as necessary. Inside an [`Owner::scope`], re-enters the lock if the
    /// ambient owner holds it. The ambient owner is determined when this method is called, not at the first
    /// poll.
    ///
    /// Concurrent acquires of one owner share one place in the line. The call waits through outages of the
    /// servers, both before and after it has a place in the line. Use
    /// [`acquire_timeout`](Self::acquire_timeout) to limit the wait.
    ///
    /// # Errors
    /// [`AcquireError::Lost`] if the owner's hold is lost. [`AcquireError::WouldDeadlock`] if the owner holds
    /// the lock through a [`SharedMutex`](crate::SharedMutex). [`AcquireError::Core`] with `MixedKinds` if
    /// the path has contenders of another kind; with `NoAuth`, `AuthFailed`, `ShortLease`,
    /// `SequenceExhausted`, `EnsembleRolledBack` or `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe, but cancelling it loses your place in the queue.
    pub fn acquire(&self) -> impl Future<Output = Result<MutexGuard, AcquireError>> + Send + use<> {
        self.enter(Owner::current(), Progress::unrecorded())
    }

    /// Acquires the lock for `owner`, like [`acquire`](Self::acquire). Re-enters without I/O if `owner` holds
    /// the lock.
    ///
    /// # Errors
    /// Those of [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    /// This method is cancel safe, but cancelling it loses your place in the queue.
    pub fn acquire_as(
        &self,
        owner: &Owner,
    ) -> impl Future<Output = Result<MutexGuard, AcquireError>> + Send + use<> {
        self.enter(Some(owner.clone()), Progress::unrecorded())
    }

    /// Acquires the lock if it is free or held by the ambient owner. Reads first, and writes only if the lock
    /// is free.
    ///
    /// # Errors
    /// [`AcquireError::Busy`] if another client holds the lock or waits for it; `Timeout` if the whole call
    /// took longer than the operation timeout; otherwise those of [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn try_acquire(&self) -> impl Future<Output = Result<MutexGuard, AcquireError>> + Send + use<> {
        let acquire = try_enter(Owner::current(), self.line.clone().into(), Progress::recorded());
        async move { Ok(MutexGuard::new(acquire.await?.own()?)) }
    }

    /// Acquires the lock, like [`acquire`](Self::acquire), waiting at most `timeout` for the whole call.
    ///
    /// # Errors
    /// [`AcquireError::TimedOut`] if the timeout expired: the ticket is being removed. Otherwise those of
    /// [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    /// This method is cancel safe, but cancelling it loses your place in the queue.
    pub fn acquire_timeout(
        &self,
        timeout: Duration,
    ) -> impl Future<Output = Result<MutexGuard, AcquireError>> + Send + use<> {
        let progress = Progress::recorded();
        let acquire = self.enter(Owner::current(), progress.clone());
        with_timeout(timeout, self.line.clone(), progress, acquire)
    }

    /// Returns the holder and the waiters, in the order of the line.
    ///
    /// # Errors
    /// `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn participants(&self) -> impl Future<Output = Result<Vec<Participant>, Error>> + Send + use<> {
        let line = self.line.clone();
        async move { line.participants().await }
    }

    /// Asks a participant to give up its place: the [`revoked`](docent_core::Held::revoked) future of its
    /// guard resolves. The participant may ignore the request. Compatible with Curator's revocation in both
    /// directions.
    ///
    /// # Errors
    /// `NoNode` if the participant has left; `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe. The request can be repeated without harm.
    pub fn revoke(
        &self,
        participant: &Participant,
    ) -> impl Future<Output = Result<(), Error>> + Send + use<> {
        let (line, participant) = (self.line.clone(), participant.clone());
        async move { line.revoke(&participant).await.in_operation("revoke") }
    }

    /// Resets the sequence numbers of the line. This is necessary when acquires fail with
    /// `SequenceExhausted`, after 2^31 − 2^20 contenders. Fences continue to increase.
    ///
    /// # Errors
    /// `NotEmpty` if a client holds the lock or waits for it; `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe. The reset can be repeated without harm.
    pub fn reset(&self) -> impl Future<Output = Result<(), Error>> + Send + use<> {
        let line = self.line.clone();
        async move { line.reset().await.in_operation("reset") }
    }
}

impl fmt::Debug for Mutex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_handle(f, "Mutex", self.line.path(), self.line.client()).finish_non_exhaustive()
    }
}
