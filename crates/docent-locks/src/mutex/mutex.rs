use super::MutexBuilder;
use crate::acquire::{enter, try_enter, with_timeout};
use crate::progress::Progress;
use crate::{AcquireError, MutexGuard, Owner};
use docent_core::recipe::{Line, debug_handle};
use docent_core::{Client, Error, Participant};
use std::fmt;
use std::future::Future;
use std::time::Duration;

/// A fair lock across processes, reentrant by [`Owner`].
///
/// # Expected flow
/// `acquire` takes a ticket (an ephemeral node with a number) below the lock's path. The lowest number holds
/// the lock; each other ticket waits for its predecessor. Releasing deletes the node, which lets the next one
/// hold. The layout is that of Curator's `InterProcessMutex`, and both exclude each other.
///
/// # Guarantees
/// - In the order of transactions at most one guard holds the lock, and their fences increase.
/// - A guard whose client is cut off, paused or starved knows that it is lost before the servers give the
///   lock away, unless its process was paused; then it knows at its next look, and the fence keeps a resource
///   safe.
/// - First come, first served: in the order in which the servers numbered the tickets.
/// - A release wakes two waiters: the next one, and the one behind it, which looks ahead.
///
/// # Assumptions
/// The session timeout is at least four ticks of the server, and the clock runs whenever the world does.
///
/// # What happens
/// - *Link down:* a holder keeps the lock until its lease runs out; a waiter keeps its place.
/// - *Session over:* a holder's guard is lost; a waiter takes a new ticket at the end of the line.
/// - *Drop or cancel:* the ticket or lock is deleted in the background, whatever had been sent.
///
/// # Tasks of one process
/// Tasks that contend for a mutex are contenders like any others: each hand-off goes through the servers, and
/// with eight contenders an acquire and its release are up to six requests. If many tasks of one process
/// contend, use a [`SharedMutex`](crate::SharedMutex).
///
/// # Caveats
/// Not for mutual exclusion at a resource that cannot check fences and must never see two writers: no lock
/// service can promise that to a process that is paused. Kazoo's locks take no part in the line, unless both
/// sides are [told of each other](MutexBuilder::neighbours). Where contenders of another kind stand at the
/// path, of a read/write lock, a semaphore, another layout of an election or an untold kazoo, whichever of
/// ours comes later is refused with [`MixedKinds`](docent_core::ErrorKind::MixedKinds).
///
/// Source: "Locks" in ZooKeeper's recipes, with the changes described for
/// [`Ticket::wait`](docent_core::recipe::Ticket::wait).
#[derive(Clone)]
pub struct Mutex {
    pub(crate) line: Line,
}

impl Mutex {
    /// The mutex at `path`. Parents are created on demand, as containers, which the servers delete when they
    /// are empty.
    ///
    /// # Errors
    /// `InvalidInput` when the path breaks a rule.
    pub fn new(client: &Client, path: &str) -> Result<Self, Error> {
        Self::builder(client, path).build()
    }

    /// Prepares a mutex with settings of its own.
    pub fn builder(client: &Client, path: &str) -> MutexBuilder {
        MutexBuilder::new(client, path)
    }

    /// The mutex of this line.
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

    /// The path, as it was given.
    pub fn path(&self) -> &str {
        self.line.path()
    }

    /// Waits until the lock is acquired, however long others hold it. Inside an [`Owner::scope`] it re-enters
    /// what the ambient owner holds; the owner is the one at the time of this call, not of the first poll.
    ///
    /// Acquires of one owner that wait at the same time share one place in the line. It waits for the
    /// servers, too: an outage is waited out, whether it has its place yet or not.
    /// [`acquire_timeout`](Self::acquire_timeout) gives up.
    ///
    /// # Errors
    /// [`AcquireError::Lost`] when the owner's hold is lost. [`AcquireError::WouldDeadlock`] when the owner
    /// has the lock by a [`SharedMutex`](crate::SharedMutex). [`AcquireError::Core`] with `MixedKinds` when
    /// contenders of another kind stand at the path; `NoAuth`, `AuthFailed`, `ShortLease`,
    /// `SequenceExhausted`, `EnsembleRolledBack`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe, but you lose your place in the line.
    pub fn acquire(&self) -> impl Future<Output = Result<MutexGuard, AcquireError>> + Send + use<> {
        self.enter(Owner::current(), Progress::unrecorded())
    }

    /// As [`acquire`](Self::acquire), for `owner`: re-enters without I/O when that owner holds the lock.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    /// This method is cancel safe, but you lose your place in the line.
    pub fn acquire_as(
        &self,
        owner: &Owner,
    ) -> impl Future<Output = Result<MutexGuard, AcquireError>> + Send + use<> {
        self.enter(Some(owner.clone()), Progress::unrecorded())
    }

    /// Acquires the lock if it is free or held by the ambient owner. Looks first and writes only if the lock
    /// is free.
    ///
    /// # Errors
    /// [`AcquireError::Busy`] when somebody holds the lock or waits for it; `Timeout` when it took longer
    /// than the operation timeout in all; else as [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn try_acquire(&self) -> impl Future<Output = Result<MutexGuard, AcquireError>> + Send + use<> {
        let acquire = try_enter(Owner::current(), self.line.clone().into(), Progress::recorded());
        async move { Ok(MutexGuard::new(acquire.await?.own()?)) }
    }

    /// As [`acquire`](Self::acquire), for at most `timeout`, which bounds the whole call.
    ///
    /// # Errors
    /// [`AcquireError::TimedOut`] when that was not enough: its ticket is being removed. Else as
    /// [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    /// This method is cancel safe, but you lose your place in the line.
    pub fn acquire_timeout(
        &self,
        timeout: Duration,
    ) -> impl Future<Output = Result<MutexGuard, AcquireError>> + Send + use<> {
        let progress = Progress::recorded();
        let acquire = self.enter(Owner::current(), progress.clone());
        with_timeout(timeout, self.line.clone(), progress, acquire)
    }

    /// Holder and waiters, in the order of the line.
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

    /// Asks a participant to give up its place: its guard's [`revoked`](docent_core::Held::revoked) resolves,
    /// and it may ignore that. Works with Curator's revocation in both directions.
    ///
    /// # Errors
    /// `NoNode` when the participant has left, `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe: asking again does no harm.
    pub fn revoke(
        &self,
        participant: &Participant,
    ) -> impl Future<Output = Result<(), Error>> + Send + use<> {
        let (line, participant) = (self.line.clone(), participant.clone());
        async move { line.revoke(&participant).await }
    }

    /// Begins the numbers of the line anew, which is due when acquires fail with `SequenceExhausted`: after
    /// 2^31 − 2^20 contenders. Fences go on increasing.
    ///
    /// # Errors
    /// `NotEmpty` when somebody holds the lock or waits for it; `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe: doing it again does no harm.
    pub fn reset(&self) -> impl Future<Output = Result<(), Error>> + Send + use<> {
        let line = self.line.clone();
        async move { line.reset().await }
    }
}

impl fmt::Debug for Mutex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_handle(f, "Mutex", self.line.path(), self.line.client()).finish_non_exhaustive()
    }
}
