use super::{ReadGuard, RwLockBuilder, WriteGuard};
use crate::acquire::{LockSide, enter, try_enter, with_timeout};
use crate::progress::Progress;
use crate::{AcquireError, Owner};
use docent_core::recipe::{Line, debug_handle};
use docent_core::{Client, Error, Participant};
use std::fmt;
use std::future::Future;
use std::time::Duration;

/// A fair lock across processes for many readers or one writer, reentrant by [`Owner`].
///
/// # Expected flow
/// Readers and writers take tickets in one line. A writer waits for everybody ahead of it and watches its
/// predecessor; a reader waits for the writers ahead of it and watches the nearest of them. The layout is
/// that of Curator's `InterProcessReadWriteLock`, and both exclude each other.
///
/// # Guarantees
/// - In the order of transactions a writer is alone, and the fences of writers increase.
/// - Nobody is starved: a reader that comes after a waiting writer waits for it.
/// - [`downgrade`](WriteGuard::downgrade) makes a writer a reader with no moment for another writer in
///   between.
/// - A release wakes the waiters that watch its ticket: the readers right behind a writer, or one writer. The
///   writer looks at the line again before it takes its turn; readers ask for no more than the few writers
///   that they knew ahead.
/// - A guard that is cut off, paused or starved knows that it is lost as [`Mutex`](crate::Mutex)'s does.
///
/// # Assumptions
/// The session timeout is at least four ticks of the server, and the clock runs whenever the world does.
///
/// # Re-entry
/// An owner that writes may write again, and one that reads may read again, without I/O. An owner that writes
/// may read as well: it takes a reader's node in the writer's place, in one round trip, as Curator does, with
/// the writer's fence. Once the writer's guards are gone, released, dropped or lost, the reader goes on and
/// lets other readers in, as after a [`downgrade`](WriteGuard::downgrade). An owner that reads and wants to
/// write would wait for itself: that is refused with [`AcquireError::WouldDeadlock`] at once.
/// Without an owner that cannot be seen, and waits for ever. All this holds from the moment on at which a
/// task of the owner begins to wait: a task that wants to read then joins a writer of the same owner, and one
/// that wants to write is refused beside a reader.
///
/// # What happens
/// As with [`Mutex`](crate::Mutex): a cut link costs no place and no hold before its lease runs out, the end
/// of a session loses guards and sends waiters to the end of the line, drop and cancel clean up in the
/// background.
///
/// # Caveats
/// Readers have no fence: a resource cannot tell a late reader from others. Data that must not be read
/// half-written needs a version of its own. Kazoo's locks take no part in the line, unless both sides are
/// [told of each other](RwLockBuilder::neighbour_writers).
///
/// Source: "Shared Locks" in ZooKeeper's recipes, with Curator's layout and its rule for a writer that steps
/// down.
#[derive(Clone)]
pub struct RwLock {
    pub(crate) writers: Line,
    pub(crate) readers: Line,
}

impl RwLock {
    /// The lock at `path`. Parents are created on demand, as containers, which the servers delete when they
    /// are empty.
    ///
    /// # Errors
    /// `InvalidInput` when the path breaks a rule.
    pub fn new(client: &Client, path: &str) -> Result<Self, Error> {
        Self::builder(client, path).build()
    }

    /// Prepares a lock with settings of its own.
    pub fn builder(client: &Client, path: &str) -> RwLockBuilder {
        RwLockBuilder::new(client, path)
    }

    /// The path, as it was given.
    pub fn path(&self) -> &str {
        self.writers.path()
    }

    /// Waits until the lock can be read, however long that takes. Inside an [`Owner::scope`] it re-enters
    /// what the ambient owner reads or writes; the owner is the one at the time of this call, not of the
    /// first poll.
    ///
    /// # Errors
    /// [`AcquireError::Lost`] when the owner's hold is lost. [`AcquireError::Core`] with `MixedKinds` when
    /// contenders of another kind stand at the path; `NoAuth`, `AuthFailed`, `ShortLease`,
    /// `SequenceExhausted`, `EnsembleRolledBack`, `Closed`: an outage of the servers is waited out.
    ///
    /// # Cancel safety
    /// This method is cancel safe, but you lose your place in the line.
    pub fn read(&self) -> impl Future<Output = Result<ReadGuard, AcquireError>> + Send + use<> {
        self.enter_to_read(Owner::current(), Progress::unrecorded())
    }

    /// As [`read`](Self::read), for `owner`: re-enters without I/O when that owner reads, and reads in its
    /// own place when it writes.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    ///
    /// # Cancel safety
    /// This method is cancel safe, but you lose your place in the line.
    pub fn read_as(
        &self,
        owner: &Owner,
    ) -> impl Future<Output = Result<ReadGuard, AcquireError>> + Send + use<> {
        self.enter_to_read(Some(owner.clone()), Progress::unrecorded())
    }

    /// Reads if no writer holds the lock or waits for it, or if the ambient owner reads or writes. Looks
    /// first and writes to ZooKeeper only if the lock is free for readers.
    ///
    /// # Errors
    /// [`AcquireError::Busy`] when a writer holds the lock or waits for it; `Timeout` when it took longer
    /// than the operation timeout in all; else as [`read`](Self::read).
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn try_read(&self) -> impl Future<Output = Result<ReadGuard, AcquireError>> + Send + use<> {
        let acquire = try_enter(Owner::current(), self.to_read(), Progress::recorded());
        async move { Ok(ReadGuard::new(acquire.await?.own()?)) }
    }

    /// As [`read`](Self::read), for at most `timeout`, which bounds the whole call.
    ///
    /// # Errors
    /// [`AcquireError::TimedOut`] when that was not enough: its ticket is being removed. Else as
    /// [`read`](Self::read).
    ///
    /// # Cancel safety
    /// This method is cancel safe, but you lose your place in the line.
    pub fn read_timeout(
        &self,
        timeout: Duration,
    ) -> impl Future<Output = Result<ReadGuard, AcquireError>> + Send + use<> {
        let progress = Progress::recorded();
        let acquire = self.enter_to_read(Owner::current(), progress.clone());
        with_timeout(timeout, self.readers.clone(), progress, acquire)
    }

    /// Waits until the lock can be written, however long that takes. Inside an [`Owner::scope`] it re-enters
    /// what the ambient owner writes.
    ///
    /// # Errors
    /// [`AcquireError::WouldDeadlock`] at once when the owner reads, or waits to. Else as
    /// [`read`](Self::read).
    ///
    /// # Cancel safety
    /// This method is cancel safe, but you lose your place in the line.
    pub fn write(&self) -> impl Future<Output = Result<WriteGuard, AcquireError>> + Send + use<> {
        self.enter_to_write(Owner::current(), Progress::unrecorded())
    }

    /// As [`write`](Self::write), for `owner`: re-enters without I/O when that owner writes.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    ///
    /// # Cancel safety
    /// This method is cancel safe, but you lose your place in the line.
    pub fn write_as(
        &self,
        owner: &Owner,
    ) -> impl Future<Output = Result<WriteGuard, AcquireError>> + Send + use<> {
        self.enter_to_write(Some(owner.clone()), Progress::unrecorded())
    }

    /// Writes if nobody holds the lock or waits for it, or if the ambient owner writes. Looks first and
    /// writes to ZooKeeper only if the lock is free.
    ///
    /// # Errors
    /// [`AcquireError::Busy`] when somebody holds the lock or waits for it; `Timeout` when it took longer
    /// than the operation timeout in all; else as [`write`](Self::write).
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn try_write(&self) -> impl Future<Output = Result<WriteGuard, AcquireError>> + Send + use<> {
        let (owner, readers) = (Owner::current(), self.readers.clone());
        let acquire = try_enter(owner.clone(), self.to_write(), Progress::recorded());
        async move { Ok(WriteGuard::new(acquire.await?.own()?, owner.unwrap_or_default(), readers)) }
    }

    /// As [`write`](Self::write), for at most `timeout`, which bounds the whole call.
    ///
    /// # Errors
    /// [`AcquireError::TimedOut`] when that was not enough: its ticket is being removed. Else as
    /// [`write`](Self::write).
    ///
    /// # Cancel safety
    /// This method is cancel safe, but you lose your place in the line.
    pub fn write_timeout(
        &self,
        timeout: Duration,
    ) -> impl Future<Output = Result<WriteGuard, AcquireError>> + Send + use<> {
        let progress = Progress::recorded();
        let acquire = self.enter_to_write(Owner::current(), progress.clone());
        with_timeout(timeout, self.writers.clone(), progress, acquire)
    }

    /// Readers and writers that hold or wait, in the order of the line.
    ///
    /// # Errors
    /// `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn participants(&self) -> impl Future<Output = Result<Vec<Participant>, Error>> + Send + use<> {
        let line = self.writers.clone();
        async move { line.participants().await }
    }

    /// Asks a participant to give up its place: its guard's `revoked` resolves, and it may ignore that. Works
    /// with Curator's revocation in both directions.
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
        let (line, participant) = (self.writers.clone(), participant.clone());
        async move { line.revoke(&participant).await }
    }

    /// Begins the numbers of the line anew, which is due when acquires fail with `SequenceExhausted`. Fences
    /// go on increasing.
    ///
    /// # Errors
    /// `NotEmpty` when somebody holds the lock or waits for it; `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe: doing it again does no harm.
    pub fn reset(&self) -> impl Future<Output = Result<(), Error>> + Send + use<> {
        let line = self.writers.clone();
        async move { line.reset().await }
    }

    fn enter_to_read(
        &self,
        owner: Option<Owner>,
        progress: Progress,
    ) -> impl Future<Output = Result<ReadGuard, AcquireError>> + Send + use<> {
        let acquire = enter(owner, self.to_read(), progress);
        async move { Ok(ReadGuard::new(acquire.await?.own()?)) }
    }

    fn enter_to_write(
        &self,
        owner: Option<Owner>,
        progress: Progress,
    ) -> impl Future<Output = Result<WriteGuard, AcquireError>> + Send + use<> {
        let (owned, readers) = (owner.clone(), self.readers.clone());
        let acquire = enter(owner, self.to_write(), progress);
        async move { Ok(WriteGuard::new(acquire.await?.own()?, owned.unwrap_or_default(), readers)) }
    }

    pub(crate) fn to_read(&self) -> LockSide {
        LockSide::shared(&self.readers, &self.writers)
    }

    pub(crate) fn to_write(&self) -> LockSide {
        LockSide::exclusive(&self.writers, &self.readers)
    }
}

impl fmt::Debug for RwLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_handle(f, "RwLock", self.path(), self.writers.client()).finish_non_exhaustive()
    }
}
