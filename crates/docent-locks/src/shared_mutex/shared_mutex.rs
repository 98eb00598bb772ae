use super::{Cohort, TurnFence};
use crate::acquire::{LockSide, Progress, enter, reentered, try_enter, with_timeout};
use crate::owner::LockHold;
use crate::{AcquireError, Mutex, MutexBuilder, Owner};
use docent_core::recipe::{Line, debug_handle};
use docent_core::{Client, Error, Guard, Held, Lost, Participant, Released};
use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

/// A [`Mutex`] for many tasks of one process.
///
/// The first task creates one node at the servers, its *ticket*. The tasks then hold the lock one after
/// another with this ticket. Each of these holds is a *turn*. The ticket is passed on from one turn to the
/// next immediately, without a request.
///
/// ```no_run
/// # use docent_locks::SharedMutex;
/// # async fn example(client: docent_core::Client) -> Result<(), Box<dyn std::error::Error>> {
/// let stock = SharedMutex::builder(&client, "/locks/stock").limit(1_000).build()?;
/// let guard = stock.acquire().await?;
/// println!("fence {}", guard.fence());
/// drop(guard); // the next task has the lock
/// # Ok(())
/// # }
/// ```
///
/// # Who shares
/// All `SharedMutex` values with the same client, path and settings share tickets. A clone of the client with
/// another timeout, or bound to a session, counts as another client. Other contenders at the path, such as a
/// plain [`Mutex`] or another process, wait in the same line.
///
/// A task that waits behind another task has no node. Therefore [`participants`](Self::participants) lists
/// the ticket and not the tasks.
///
/// # Guarantees
/// - Those of [`Mutex`]: at most one guard holds the lock in the order of transactions, and fences increase.
/// - Tasks have their turns in order of arrival. A task that is cancelled when its turn comes passes the turn
///   on.
/// - A ticket is passed on at most [`limit`](SharedMutexBuilder::limit) times, and no turn begins later than
///   [`share_for`](SharedMutexBuilder::share_for) after the first turn. Then the ticket is given up, and the
///   waiting tasks take another ticket at the end of the line.
/// - If the ticket is lost, the guard of the current turn is lost. The other tasks take another ticket
///   immediately.
///
/// The ticket is also given up at the end of a turn in these cases:
///
/// - no task waits;
/// - a participant has [asked](Self::revoke) for the ticket;
/// - the client is shut down;
/// - a guard's [transaction](docent_core::Held::transaction) may still be applied, because the reply was lost
///   or the commit was cancelled.
///
/// # Fences
/// A 64-bit number cannot distinguish two turns with one ticket, so the guards have a
/// [`TurnFence`](crate::TurnFence).
///
/// # Re-entry
/// Re-entry is by [`Owner`], as with `Mutex`. An owner that holds a `SharedMutex` cannot acquire a `Mutex` of
/// the same path: the call fails with [`WouldDeadlock`](AcquireError::WouldDeadlock). An owner that holds the
/// `Mutex` can re-enter it through the `SharedMutex`: that guard has turn 0, and its ticket is not passed on.
///
/// Source: "Lock Cohorting" by Dice, Marathe and Shavit (2012), with the process as the cohort.
#[derive(Clone)]
pub struct SharedMutex {
    pub(super) line: Line,
    pub(super) cohort: Arc<Cohort>,
}

impl SharedMutex {
    /// Creates a handle for the mutex at `path`, with default settings. Missing parents are created on demand
    /// as containers, which the servers delete when they are empty.
    ///
    /// # Errors
    /// `InvalidInput` if the path breaks a rule.
    pub fn new(client: &Client, path: &str) -> Result<Self, Error> {
        Self::builder(client, path).build()
    }

    /// Returns a builder for a mutex with custom settings.
    pub fn builder(client: &Client, path: &str) -> SharedMutexBuilder {
        SharedMutexBuilder::new(client, path)
    }

    fn side(&self) -> LockSide {
        LockSide::shared_in(&self.cohort, &self.line)
    }

    fn enter(
        &self,
        owner: Option<Owner>,
        progress: Progress,
    ) -> impl Future<Output = Result<SharedMutexGuard, AcquireError>> + Send + use<> {
        let acquire = enter(owner, self.side(), progress);
        async move { acquire.await.map(SharedMutexGuard::new) }
    }

    /// Returns the path that was passed to the constructor.
    pub fn path(&self) -> &str {
        self.line.path()
    }

    /// Acquires the lock, waiting as long as necessary, like [`Mutex::acquire`]. The task's place among the
    /// tasks of this process is determined by the first poll.
    ///
    /// # Errors
    /// Those of [`Mutex::acquire`], without `WouldDeadlock`.
    ///
    /// # Cancel safety
    /// This method is cancel safe, but cancelling it loses your place in the queue.
    pub fn acquire(&self) -> impl Future<Output = Result<SharedMutexGuard, AcquireError>> + Send + use<> {
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
    ) -> impl Future<Output = Result<SharedMutexGuard, AcquireError>> + Send + use<> {
        self.enter(Some(owner.clone()), Progress::unrecorded())
    }

    /// Acquires the lock if it is free or held by the ambient owner. If a task of this process holds the lock
    /// or waits for it, the call only reads who the holder is, for the error.
    ///
    /// # Errors
    /// [`AcquireError::Busy`] if another client or task holds the lock or waits for it. `Timeout` if the
    /// whole call took longer than the operation timeout; otherwise those of [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn try_acquire(&self) -> impl Future<Output = Result<SharedMutexGuard, AcquireError>> + Send + use<> {
        let acquire = try_enter(Owner::current(), self.side(), Progress::recorded());
        async move { acquire.await.map(SharedMutexGuard::new) }
    }

    /// Acquires the lock, like [`acquire`](Self::acquire), waiting at most `timeout` for the whole call.
    ///
    /// # Errors
    /// [`AcquireError::TimedOut`] if the timeout expired; otherwise those of [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    /// This method is cancel safe, but cancelling it loses your place in the queue.
    pub fn acquire_timeout(
        &self,
        timeout: Duration,
    ) -> impl Future<Output = Result<SharedMutexGuard, AcquireError>> + Send + use<> {
        let progress = Progress::recorded();
        let acquire = self.enter(Owner::current(), progress.clone());
        with_timeout(timeout, self.line.clone(), progress, acquire)
    }

    /// Returns the holder and the waiters, like [`Mutex::participants`].
    ///
    /// # Errors
    /// `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn participants(&self) -> impl Future<Output = Result<Vec<Participant>, Error>> + Send + use<> {
        self.plain().participants()
    }

    /// Asks a participant to give up its place, like [`Mutex::revoke`]. After the request, the participant
    /// no longer passes its ticket on to another task.
    ///
    /// # Errors
    /// `NoNode` if the participant has left, `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe. The request can be repeated without harm.
    pub fn revoke(
        &self,
        participant: &Participant,
    ) -> impl Future<Output = Result<(), Error>> + Send + use<> {
        self.plain().revoke(participant)
    }

    /// Resets the sequence numbers of the line, like [`Mutex::reset`].
    ///
    /// # Errors
    /// `NotEmpty` if a client holds the lock or waits for it; `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe. The reset can be repeated without harm.
    pub fn reset(&self) -> impl Future<Output = Result<(), Error>> + Send + use<> {
        self.plain().reset()
    }

    /// Returns the same lock as a mutex that shares no tickets.
    fn plain(&self) -> Mutex {
        Mutex::of(self.line.clone())
    }
}

impl fmt::Debug for SharedMutex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_handle(f, "SharedMutex", self.path(), self.line.client()).finish_non_exhaustive()
    }
}

/// Default maximum number of times that a ticket is passed on.
const LIMIT: u32 = 100;

/// Default maximum time during which a ticket is passed on.
const SHARE_FOR: Duration = Duration::from_secs(1);

/// Settings of a [`SharedMutex`].
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct SharedMutexBuilder {
    mutex: MutexBuilder,
    limit: u32,
    time: Duration,
}

impl SharedMutexBuilder {
    pub(super) fn new(client: &Client, path: &str) -> Self {
        Self { mutex: MutexBuilder::new(client, path), limit: LIMIT, time: SHARE_FOR }
    }

    /// Sets the maximum number of times that a ticket is passed on to another task; at least 1. Default 100.
    ///
    /// Each shared ticket ahead of a contender in another process delays that contender by at most this many
    /// extra turns, compared with a plain ticket. A high limit favours the tasks of this process, a low limit
    /// the other processes.
    pub fn limit(mut self, limit: u32) -> Self {
        self.limit = limit;
        self
    }

    /// Sets the maximum time between the first turn with a ticket and the start of the last turn with the
    /// same ticket. Default 1 s. A turn that has started is not cut short.
    pub fn share_for(mut self, time: Duration) -> Self {
        self.time = time;
        self
    }

    /// Also waits for contenders of another kind, like [`MutexBuilder::neighbours`].
    pub fn neighbours(mut self, marker: impl Into<String>) -> Self {
        self.mutex = self.mutex.neighbours(marker);
        self
    }

    /// Builds the mutex.
    ///
    /// # Errors
    /// `InvalidInput` if the limit is 0; otherwise those of [`MutexBuilder::build`].
    pub fn build(self) -> Result<SharedMutex, Error> {
        let Self { mutex, limit, time } = self;
        let line = mutex.line()?;
        if limit == 0 {
            let rule = "the limit 0 of a shared ticket must be at least 1";
            return Err(Error::invalid_input("mutex", rule).at(line.path()));
        }
        let cohort: Arc<Cohort> = line.common((limit, time, mutex.settings()), || Cohort::new(limit, time));
        Ok(SharedMutex { line, cohort })
    }
}

/// Guard of a [`SharedMutex`](crate::SharedMutex). Several guards of one owner share a turn; the turn ends
/// with the last of them.
///
/// Dereferences to [`Held`], which reports whether the guard is held, runs work only while it is held, and
/// starts [transactions](Held::transaction) that are applied only in this turn. [`Held::fence`] returns
/// `None` for a turn: call [`fence`](Self::fence) instead.
///
/// # On drop
/// Dropping the last guard ends the turn. If another task waits and the [limits] allow it, that task has the
/// lock immediately. Otherwise the lock is released in the background: the delete of its node is submitted
/// immediately and retried until it succeeds. The drop never blocks or panics, even outside a runtime.
///
/// [limits]: crate::SharedMutexBuilder::limit
#[derive(Debug)]
#[must_use = "the turn ends when its last guard is dropped"]
pub struct SharedMutexGuard {
    hold: LockHold,
}

impl SharedMutexGuard {
    pub(super) fn new(hold: LockHold) -> Self {
        Self { hold }
    }

    /// Returns the fencing token, which is higher than the fence of every earlier holder of this path. All
    /// guards of a turn have the same fence.
    pub fn fence(&self) -> TurnFence {
        match &self.hold {
            LockHold::Own(hold) => hold.fence().into(),
            LockHold::Turn(turn) => turn.fence(),
        }
    }

    /// Returns the path of the ticket's node.
    ///
    /// The node stays while the ticket is passed on. A check of this path in a transaction of your own
    /// therefore does not prove that this guard is held. Use the guard's [`transaction`](Held::transaction)
    /// instead.
    pub fn path(&self) -> String {
        self.hold.path()
    }

    /// Returns another guard of the same turn, without I/O and for any owner.
    ///
    /// # Errors
    /// [`Lost`] if the lock is lost.
    pub fn reenter(&self) -> Result<Self, Lost> {
        Ok(Self::new(reentered(self.hold.clone())?))
    }

    /// Releases this guard. The last guard of a turn returns immediately if another task has the next turn.
    /// Otherwise it waits until the ticket's node is deleted, at most for the operation timeout and until the
    /// end of the lease. [`Released::Pending`] is returned if that takes longer, as in an outage: the lock is
    /// then released in the background or with its session.
    ///
    /// # Errors
    /// `Lost` if the lock was lost before this call. `NoAuth` and other refusals of the servers. `Closed` if
    /// the client was closed: the lock is then released with its session.
    ///
    /// # Cancel safety
    /// This method is cancel safe: the release continues in the background.
    pub async fn release(self) -> Result<Released, Error> {
        self.hold.release().await
    }
}

impl Deref for SharedMutexGuard {
    type Target = Held;

    fn deref(&self) -> &Held {
        &self.hold
    }
}

impl Guard for SharedMutexGuard {
    fn release(self) -> impl Future<Output = Result<Released, Error>> + Send {
        Self::release(self)
    }
}
