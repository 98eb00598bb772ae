use super::{ReadGuard, WriteGuard};
use crate::acquire::{LockSide, Progress, enter, try_enter, with_timeout};
use crate::{AcquireError, Owner};
use docent_core::recipe::{InOperation, Line, RecipeKind, debug_handle};
use docent_core::{Client, Error, Participant, Role};
use std::fmt;
use std::future::Future;
use std::time::Duration;

/// A fair lock for many readers or one writer, shared by many processes and reentrant by [`Owner`].
///
/// # Expected flow
/// Readers and writers take tickets in one line. A writer waits for all tickets ahead of it and watches its
/// predecessor. A reader waits for the writers ahead of it and watches the nearest of them. The layout is
/// that of Curator's `InterProcessReadWriteLock`, and both exclude each other.
///
/// # Guarantees
/// - A writer is alone in the order of transactions, and the fences of writers increase.
/// - No contender starves: a reader that arrives after a waiting writer waits for that writer.
/// - [`downgrade`](WriteGuard::downgrade) turns a writer into a reader without a moment in which another
///   writer could take the lock.
/// - A release wakes the waiters that watch its ticket: the readers right behind a writer, or one writer. The
///   writer reads the line again before it takes its turn; readers only check the few writers that they knew
///   to be ahead.
/// - A guard whose client is disconnected, paused or starved learns of its loss like the guard of a
///   [`Mutex`](crate::Mutex).
///
/// # Assumptions
/// The session timeout is at least four server ticks, and the clock does not stop while the machine is
/// suspended.
///
/// # Re-entry
/// | An owner that | may also read | may also write |
/// |---|---|---|
/// | reads | yes, without I/O | no: [`AcquireError::WouldDeadlock`] |
/// | writes | yes, in one round trip | yes, without I/O |
///
/// An owner that writes and then reads takes a reader's node in the writer's place, as Curator does, with the
/// writer's fence. Once the writer's guards are released, dropped or lost, the reader remains and lets other
/// readers in, as after a [`downgrade`](WriteGuard::downgrade).
///
/// An owner that reads and wants to write would wait for itself, so the call is refused immediately. Without
/// an owner the lock cannot detect this case, and the call waits forever.
///
/// These rules already apply while a task of the owner waits. If one task waits to write, another task that
/// wants to read waits for it and then reads in the writer's place. If one task waits to read, another task
/// that wants to write is refused.
///
/// # What happens
/// The behaviour is that of a [`Mutex`](crate::Mutex). After a lost connection, a waiter keeps its place in
/// the line, and a holder keeps the lock until its lease runs out. If the session ends, guards are lost and
/// waiters go to the end of the line. Nodes of dropped guards and cancelled calls are deleted in the
/// background.
///
/// # Caveats
/// Readers have no fence: a resource cannot distinguish a late reader from others. Data that must not be read
/// half-written needs its own version. Kazoo's locks share the line only if both sides are [configured
/// to](RwLockBuilder::neighbour_writers).
///
/// Source: "Shared Locks" in ZooKeeper's recipes, with Curator's layout and its rule for a writer that
/// downgrades.
#[derive(Clone)]
pub struct RwLock {
    writers: Line,
    readers: Line,
}

impl RwLock {
    /// Creates a handle for the lock at `path`. Missing parents are created on demand as containers, which
    /// the servers delete when they are empty.
    ///
    /// # Errors
    /// `InvalidInput` if the path breaks a rule.
    pub fn new(client: &Client, path: &str) -> Result<Self, Error> {
        Self::builder(client, path).build()
    }

    /// Returns a builder for a lock with custom settings.
    pub fn builder(client: &Client, path: &str) -> RwLockBuilder {
        RwLockBuilder::new(client, path)
    }

    /// Returns the path that was passed to the constructor.
    pub fn path(&self) -> &str {
        self.writers.path()
    }

    /// Acquires the lock for reading, waiting as long as necessary. Inside an [`Owner::scope`], re-enters the
    /// lock if the ambient owner reads or writes. The ambient owner is determined when this method is called,
    /// not at the first poll. An outage of the servers is waited out.
    ///
    /// # Errors
    /// [`AcquireError::Lost`] if the owner's hold is lost. [`AcquireError::Core`] with `MixedKinds` if the
    /// path has contenders of another kind; with `NoAuth`, `AuthFailed`, `ShortLease`, `SequenceExhausted`,
    /// `EnsembleRolledBack` or `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe, but cancelling it loses your place in the queue.
    pub fn read(&self) -> impl Future<Output = Result<ReadGuard, AcquireError>> + Send + use<> {
        self.enter_to_read(Owner::current(), Progress::unrecorded())
    }

    /// Acquires the lock for reading for `owner`, like [`read`](Self::read). Re-enters without I/O if `owner`
    /// reads, and reads in the writer's place if `owner` writes.
    ///
    /// # Errors
    /// Those of [`read`](Self::read).
    ///
    /// # Cancel safety
    /// This method is cancel safe, but cancelling it loses your place in the queue.
    pub fn read_as(
        &self,
        owner: &Owner,
    ) -> impl Future<Output = Result<ReadGuard, AcquireError>> + Send + use<> {
        self.enter_to_read(Some(owner.clone()), Progress::unrecorded())
    }

    /// Acquires the lock for reading if no writer holds the lock or waits for it, or if the ambient owner
    /// reads or writes. Lists the line first, and creates a ticket only if the lock is free for readers.
    ///
    /// # Errors
    /// [`AcquireError::Busy`] if a writer holds the lock or waits for it; `Timeout` if the whole call took
    /// longer than the operation timeout; otherwise those of [`read`](Self::read).
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn try_read(&self) -> impl Future<Output = Result<ReadGuard, AcquireError>> + Send + use<> {
        let acquire = try_enter(Owner::current(), self.to_read(), Progress::recorded());
        async move { Ok(ReadGuard::new(acquire.await?.own()?)) }
    }

    /// Acquires the lock for reading, like [`read`](Self::read), waiting at most `timeout` for the whole
    /// call.
    ///
    /// # Errors
    /// [`AcquireError::TimedOut`] if the timeout expired: the ticket is being removed. Otherwise those of
    /// [`read`](Self::read).
    ///
    /// # Cancel safety
    /// This method is cancel safe, but cancelling it loses your place in the queue.
    pub fn read_timeout(
        &self,
        timeout: Duration,
    ) -> impl Future<Output = Result<ReadGuard, AcquireError>> + Send + use<> {
        let progress = Progress::recorded();
        let acquire = self.enter_to_read(Owner::current(), progress.clone());
        with_timeout(timeout, self.readers.clone(), progress, acquire)
    }

    /// Acquires the lock for writing, waiting as long as necessary. Inside an [`Owner::scope`], re-enters the
    /// lock if the ambient owner writes.
    ///
    /// # Errors
    /// [`AcquireError::WouldDeadlock`] immediately if the owner reads or waits to read. Otherwise those of
    /// [`read`](Self::read).
    ///
    /// # Cancel safety
    /// This method is cancel safe, but cancelling it loses your place in the queue.
    pub fn write(&self) -> impl Future<Output = Result<WriteGuard, AcquireError>> + Send + use<> {
        self.enter_to_write(Owner::current(), Progress::unrecorded())
    }

    /// Acquires the lock for writing for `owner`, like [`write`](Self::write). Re-enters without I/O if
    /// `owner` writes.
    ///
    /// # Errors
    /// Those of [`write`](Self::write).
    ///
    /// # Cancel safety
    /// This method is cancel safe, but cancelling it loses your place in the queue.
    pub fn write_as(
        &self,
        owner: &Owner,
    ) -> impl Future<Output = Result<WriteGuard, AcquireError>> + Send + use<> {
        self.enter_to_write(Some(owner.clone()), Progress::unrecorded())
    }

    /// Acquires the lock for writing if no client holds the lock or waits for it, or if the ambient owner
    /// writes. Lists the line first, and creates a ticket only if the lock is free.
    ///
    /// # Errors
    /// [`AcquireError::Busy`] if another client holds the lock or waits for it; `Timeout` if the whole call
    /// took longer than the operation timeout; otherwise those of [`write`](Self::write).
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn try_write(&self) -> impl Future<Output = Result<WriteGuard, AcquireError>> + Send + use<> {
        let (owner, readers) = (Owner::current(), self.readers.clone());
        let acquire = try_enter(owner.clone(), self.to_write(), Progress::recorded());
        async move { Ok(WriteGuard::new(acquire.await?.own()?, owner.unwrap_or_default(), readers)) }
    }

    /// Acquires the lock for writing, like [`write`](Self::write), waiting at most `timeout` for the whole
    /// call.
    ///
    /// # Errors
    /// [`AcquireError::TimedOut`] if the timeout expired: the ticket is being removed. Otherwise those of
    /// [`write`](Self::write).
    ///
    /// # Cancel safety
    /// This method is cancel safe, but cancelling it loses your place in the queue.
    pub fn write_timeout(
        &self,
        timeout: Duration,
    ) -> impl Future<Output = Result<WriteGuard, AcquireError>> + Send + use<> {
        let progress = Progress::recorded();
        let acquire = self.enter_to_write(Owner::current(), progress.clone());
        with_timeout(timeout, self.writers.clone(), progress, acquire)
    }

    /// Returns the readers and writers that hold or wait, in the order of the line.
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

    /// Asks a participant to give up its place: the `revoked` future of its guard resolves. The participant
    /// may ignore the request. Compatible with Curator's revocation in both directions.
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
        let (line, participant) = (self.writers.clone(), participant.clone());
        async move { line.revoke(&participant).await.in_operation("revoke") }
    }

    /// Resets the sequence numbers of the line. This is necessary when acquires fail with
    /// `SequenceExhausted`. Fences continue to increase.
    ///
    /// # Errors
    /// `NotEmpty` if a client holds the lock or waits for it; `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe. The reset can be repeated without harm.
    pub fn reset(&self) -> impl Future<Output = Result<(), Error>> + Send + use<> {
        let line = self.writers.clone();
        async move { line.reset().await.in_operation("reset") }
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

static KIND: RecipeKind = RecipeKind::new("rw_lock", "acquire");

/// Text before the sequence numbers of writers and readers, as in Curator's `InterProcessReadWriteLock`.
const WRITER: &str = "__WRIT__";
const READER: &str = "__READ__";

/// Settings of an [`RwLock`].
#[derive(Clone)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct RwLockBuilder {
    client: Client,
    path: String,
    neighbours: Vec<(String, Role)>,
}

impl RwLockBuilder {
    pub(crate) fn new(client: &Client, path: &str) -> Self {
        Self { client: client.clone(), path: path.to_owned(), neighbours: Vec::new() }
    }

    /// Also counts nodes of another kind as writers: nodes whose names end with `marker` and ten digits, such
    /// as `__lock__` for kazoo's `WriteLock`. May be called for several kinds. Default none.
    ///
    /// The other contenders have to wait for Docent's nodes as well; otherwise both hold the lock. Kazoo's
    /// `WriteLock` does with `extra_lock_patterns=["__WRIT__", "__READ__"]`. All contenders at the path need
    /// the same settings.
    pub fn neighbour_writers(mut self, marker: impl Into<String>) -> Self {
        self.neighbours.push((marker.into(), Role::Exclusive));
        self
    }

    /// Counts nodes of another kind as readers, like [`neighbour_writers`](Self::neighbour_writers) does for
    /// writers: `__rlock__` for kazoo's `ReadLock`, which waits for Docent's writers with
    /// `extra_lock_patterns=["__WRIT__"]`.
    pub fn neighbour_readers(mut self, marker: impl Into<String>) -> Self {
        self.neighbours.push((marker.into(), Role::Shared));
        self
    }

    /// Builds the lock.
    ///
    /// # Errors
    /// `InvalidInput` if the path breaks a rule, or if a marker is empty, contains '/', ends with a digit or
    /// is already used.
    pub fn build(self) -> Result<RwLock, Error> {
        let (mut writers, mut readers) = Line::sides(&self.client, &self.path, &KIND, WRITER, READER)?;
        for (marker, role) in self.neighbours {
            writers = writers.with_neighbours(&marker, role)?;
            readers = readers.with_neighbours(marker, role)?;
        }
        Ok(RwLock { writers, readers })
    }
}

impl fmt::Debug for RwLockBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_handle(f, "RwLockBuilder", &self.path, &self.client)
            .field("neighbours", &self.neighbours)
            .finish_non_exhaustive()
    }
}
