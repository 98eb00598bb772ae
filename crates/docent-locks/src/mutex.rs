use crate::acquire::{Progress, enter, reentered, release, try_enter, with_timeout};
use crate::{AcquireError, Owner};
use docent_core::recipe::{Hold, InOperation, Line, RecipeKind, debug_handle};
use docent_core::{Client, Error, Fence, Guard, Held, Lost, Participant, Released, Role};
use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::sync::Arc;
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

static KIND: RecipeKind = RecipeKind::new("mutex", "acquire");

/// Text before the sequence number in a contender's name, as in Curator's `InterProcessMutex`.
const MARKER: &str = "lock-";

/// Settings of a [`Mutex`].
#[derive(Clone)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct MutexBuilder {
    client: Client,
    path: String,
    settings: Settings,
}

/// Settings that all handles of a mutex need to share its tickets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Settings {
    /// Markers of contenders of another kind.
    neighbours: Vec<String>,
}

impl MutexBuilder {
    pub(crate) fn new(client: &Client, path: &str) -> Self {
        Self { client: client.clone(), path: path.to_owned(), settings: Settings::default() }
    }

    /// Also waits for contenders of another kind: nodes whose names end with `marker` and ten digits, such as
    /// `__lock__` for kazoo's `Lock`. May be called for several kinds. By default the mutex waits only for
    /// contenders with Docent's marker, which Curator's and go-zookeeper's locks also use.
    ///
    /// The other contenders have to wait for Docent's nodes as well; otherwise both hold the lock. Kazoo's
    /// locks do with `extra_lock_patterns=["lock-"]`. All contenders at the path need the same settings.
    pub fn neighbours(mut self, marker: impl Into<String>) -> Self {
        self.settings.neighbours.push(marker.into());
        self
    }

    /// Builds the mutex.
    ///
    /// # Errors
    /// `InvalidInput` if the path breaks a rule, or if a marker is empty, contains '/', ends with a digit or
    /// is already used.
    pub fn build(self) -> Result<Mutex, Error> {
        Ok(Mutex { line: self.line()? })
    }

    pub(crate) fn line(&self) -> Result<Line, Error> {
        let line = Line::new(&self.client, &self.path, &KIND, MARKER)?;
        let with = |line: Line, marker: &String| line.with_neighbours(marker, Role::Exclusive);
        self.settings.neighbours.iter().try_fold(line, with)
    }

    pub(crate) fn settings(self) -> Settings {
        self.settings
    }
}

impl fmt::Debug for MutexBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_handle(f, "MutexBuilder", &self.path, &self.client)
            .field("neighbours", &self.settings.neighbours)
            .finish_non_exhaustive()
    }
}

/// Guard of a [`Mutex`](crate::Mutex). Several guards of one owner share a hold; the lock is released with
/// the last of them.
///
/// Dereferences to [`Held`], which reports whether the lock is still held, runs work only while the lock is
/// held, and writes to ZooKeeper only while the lock is held.
///
/// # On drop
/// Dropping the last guard releases the lock in the background: the delete of its node is submitted
/// immediately and retried until it succeeds. The drop never blocks or panics, even outside a runtime. Call
/// [`release`](Self::release) to wait until the node is deleted.
#[derive(Debug)]
#[must_use = "the lock is released when the guard is dropped"]
pub struct MutexGuard {
    hold: Arc<Hold>,
}

impl MutexGuard {
    fn new(hold: Arc<Hold>) -> Self {
        Self { hold }
    }

    /// Returns the fencing token, which is higher than the fence of every earlier holder of this path. All
    /// guards of a hold have the same fence.
    pub fn fence(&self) -> Fence {
        self.hold.fence()
    }

    /// Returns the path of the lock's node.
    pub fn path(&self) -> String {
        self.hold.path()
    }

    /// Returns another guard of the same hold, without I/O and for any owner.
    ///
    /// # Errors
    /// [`Lost`] if the lock is lost.
    pub fn reenter(&self) -> Result<Self, Lost> {
        Ok(Self::new(reentered(Arc::clone(&self.hold))?))
    }

    /// Releases this guard. The last guard of a hold waits until the lock's node is deleted, at most for the
    /// operation timeout and until the end of the lease. [`Released::Pending`] is returned if that takes
    /// longer, as in an outage: the lock is then released in the background or with its session.
    ///
    /// # Errors
    /// `Lost` if the lock was lost before this call. `NoAuth` and other refusals of the servers. `Closed` if
    /// the client was closed: the lock is then released with its session.
    ///
    /// # Cancel safety
    /// This method is cancel safe: the release continues in the background.
    pub async fn release(self) -> Result<Released, Error> {
        release(self.hold).await
    }
}

impl Deref for MutexGuard {
    type Target = Held;

    fn deref(&self) -> &Held {
        &self.hold
    }
}

impl Guard for MutexGuard {
    fn release(self) -> impl Future<Output = Result<Released, Error>> + Send {
        Self::release(self)
    }
}
