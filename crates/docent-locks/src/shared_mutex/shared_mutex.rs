use super::{Cohort, SharedMutexBuilder, SharedMutexGuard};
use crate::acquire::{LockSide, enter, try_enter, with_timeout};
use crate::progress::Progress;
use crate::{AcquireError, Mutex, Owner};
use docent_core::recipe::{Line, debug_handle};
use docent_core::{Client, Error, Participant};
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// A [`Mutex`] for many tasks of one process.
///
/// The first task creates one node at the servers, its *ticket*. The tasks then hold the lock one after
/// another with this ticket. Each holding is a *turn*. From one turn to the next the ticket is passed on at
/// once, without a request.
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
/// All values of `SharedMutex` with the same client, path and settings share tickets. A clone of the client
/// with another timeout, or bound to a session, counts as another client. Other contenders at the path, such
/// as a plain [`Mutex`] or another process, wait in the same line.
///
/// A task that waits behind another task has no node. So [`participants`](Self::participants) lists the
/// ticket, and not the tasks.
///
/// # Guarantees
/// - Those of [`Mutex`]: at most one guard holds the lock in the order of transactions, and the fences
///   increase.
/// - The tasks have their turns in the order in which they came. A task that is cancelled when its turn comes
///   passes the turn on.
/// - A ticket is passed on at most [`limit`](SharedMutexBuilder::limit) times, and no turn begins later than
///   [`share_for`](SharedMutexBuilder::share_for) after the first one. Then the ticket is given up, and the
///   tasks that wait take another one at the end of the line.
/// - If the ticket is lost, its guard is lost. The other tasks take another ticket at once.
///
/// At the end of a turn the ticket is also given up if no task waits, if a participant has
/// [asked](Self::revoke) for it, if the client is shut down, or if a guard's
/// [transaction](docent_core::Held::transaction) may still be applied because its reply was lost or not
/// waited for.
///
/// # Fences
/// A number of 64 bits cannot tell two turns apart, so the guards have a [`TurnFence`](crate::TurnFence).
///
/// # Re-entry
/// By [`Owner`], as with `Mutex`. An owner that holds a `SharedMutex` cannot acquire a `Mutex` of the same
/// path: it gets [`WouldDeadlock`](AcquireError::WouldDeadlock). An owner that holds the `Mutex` re-enters it
/// by the `SharedMutex`: that guard has turn 0, and its ticket is not passed on.
///
/// Source: "Lock Cohorting" by Dice, Marathe and Shavit (2012), with the process as the cohort.
#[derive(Clone)]
pub struct SharedMutex {
    pub(super) line: Line,
    pub(super) cohort: Arc<Cohort>,
}

impl SharedMutex {
    /// The mutex at `path`, with the default settings. Missing parents are created as containers, which the
    /// servers delete when they are empty.
    ///
    /// # Errors
    /// `InvalidInput` if the path breaks a rule.
    pub fn new(client: &Client, path: &str) -> Result<Self, Error> {
        Self::builder(client, path).build()
    }

    /// Prepares a mutex with other settings.
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

    /// The path, as it was given.
    pub fn path(&self) -> &str {
        self.line.path()
    }

    /// Waits until the lock is acquired, as [`Mutex::acquire`]. The task's place among the tasks of this
    /// process is that of the first poll.
    ///
    /// # Errors
    /// As [`Mutex::acquire`], without `WouldDeadlock`.
    ///
    /// # Cancel safety
    /// This method is cancel safe, but the task loses its place.
    pub fn acquire(&self) -> impl Future<Output = Result<SharedMutexGuard, AcquireError>> + Send + use<> {
        self.enter(Owner::current(), Progress::unrecorded())
    }

    /// As [`acquire`](Self::acquire), for `owner`. Re-enters without I/O if that owner holds the lock.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    /// This method is cancel safe, but the task loses its place.
    pub fn acquire_as(
        &self,
        owner: &Owner,
    ) -> impl Future<Output = Result<SharedMutexGuard, AcquireError>> + Send + use<> {
        self.enter(Some(owner.clone()), Progress::unrecorded())
    }

    /// Acquires the lock if it is free or held by the ambient owner. If a task of this process holds the lock
    /// or waits for it, the only requests are those that find the holder.
    ///
    /// # Errors
    /// [`AcquireError::Busy`] if somebody holds the lock or waits for it. `Timeout` if it took longer than
    /// the operation timeout in all; else as [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn try_acquire(&self) -> impl Future<Output = Result<SharedMutexGuard, AcquireError>> + Send + use<> {
        let acquire = try_enter(Owner::current(), self.side(), Progress::recorded());
        async move { acquire.await.map(SharedMutexGuard::new) }
    }

    /// As [`acquire`](Self::acquire), for at most `timeout`, which bounds the whole call.
    ///
    /// # Errors
    /// [`AcquireError::TimedOut`] if that was not enough; else as [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    /// This method is cancel safe, but the task loses its place.
    pub fn acquire_timeout(
        &self,
        timeout: Duration,
    ) -> impl Future<Output = Result<SharedMutexGuard, AcquireError>> + Send + use<> {
        let progress = Progress::recorded();
        let acquire = self.enter(Owner::current(), progress.clone());
        with_timeout(timeout, self.line.clone(), progress, acquire)
    }

    /// As [`Mutex::participants`].
    ///
    /// # Errors
    /// `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn participants(&self) -> impl Future<Output = Result<Vec<Participant>, Error>> + Send + use<> {
        self.plain().participants()
    }

    /// As [`Mutex::revoke`]. A ticket that somebody asked for is not passed on.
    ///
    /// # Errors
    /// `NoNode` if the participant has left, `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe: asking again does no harm.
    pub fn revoke(
        &self,
        participant: &Participant,
    ) -> impl Future<Output = Result<(), Error>> + Send + use<> {
        self.plain().revoke(participant)
    }

    /// As [`Mutex::reset`].
    ///
    /// # Errors
    /// `NotEmpty` if somebody holds the lock or waits for it; `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe: doing it again does no harm.
    pub fn reset(&self) -> impl Future<Output = Result<(), Error>> + Send + use<> {
        self.plain().reset()
    }

    /// The same lock, as one that shares no tickets.
    fn plain(&self) -> Mutex {
        Mutex::of(self.line.clone())
    }
}

impl fmt::Debug for SharedMutex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_handle(f, "SharedMutex", self.path(), self.line.client()).finish_non_exhaustive()
    }
}
