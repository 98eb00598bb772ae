use super::holder::Holder;
use crate::{AcquireError, Mutex, MutexGuard, Owner};
use docent_core::recipe::{self, InOperation, Line, NodePath, RecipeKind, debug_handle};
use docent_core::{Client, CreateMode, Error, ErrorKind, Node, planted};
use std::fmt;
use std::future::Future;
use std::time::{Duration, Instant, SystemTime};
use uuid::Uuid;

static KIND: RecipeKind = RecipeKind::new("lease", "obtain");

/// Text before the sequence number in a contender's name, as in kazoo's `Lock`.
const MARKER: &str = "__lock__";
/// Name of the node that records the holder of the lease.
const HOLDER: &str = "lease_holder";
/// Minimum duration, because the end is stored in whole seconds.
const SHORTEST: Duration = Duration::from_secs(1);
/// Maximum duration, because the format has four-digit years.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// A lease on a name for a fixed time. The holder keeps the lease until its end, even if the process exits or
/// the session expires earlier. Use a lease for jobs that run occasionally, on one of many machines.
///
/// # Expected flow
/// Every machine calls [`try_obtain`](Self::try_obtain) when the job is due. One machine obtains the lease
/// and does the job; the others get `None` while the lease lasts. The holder can call `try_obtain` again to
/// extend the lease.
///
/// The layout is that of kazoo's `NonBlockingLease` or, with [several slots](Self::slots), of its
/// `MultiNonBlockingLease`. A persistent node `lease_holder` records the holder and the end, and is changed
/// only under kazoo's lock. Docent and kazoo exclude each other.
///
/// # Guarantees
/// One identity holds the lease until its end, as far as the clocks of the machines agree. Writes are exact:
/// a lost reply does not hide a lease that was obtained. If the outcome stays unknown, the error is
/// `OutcomeUnknown`.
///
/// # Caveats
/// Unlike all other locks of this crate, the lease depends on the clocks of the machines. Two identities may
/// hold the lease at the same time, for as long as their clocks differ. The lease has no fence, and its end
/// is not signalled. If that matters, use a [`Mutex`].
#[derive(Clone)]
pub struct TimedLease {
    client: Client,
    path: NodePath,
    duration: Duration,
    identity: String,
    slots: Option<u32>,
}

impl TimedLease {
    /// Creates a handle for the lease at `path`, which lasts for `duration` after it is obtained. The end is
    /// rounded down to whole seconds.
    ///
    /// # Errors
    /// `InvalidInput` if the path breaks a rule, or if the duration is not from 1 s to 100 years.
    pub fn new(client: &Client, path: &str, duration: Duration) -> Result<Self, Error> {
        let path = NodePath::of_recipe(client, "lease", path)?;
        if !(SHORTEST..=LONGEST).contains(&duration) {
            let detail = format!("duration {duration:?} must be from 1 s to 100 years");
            return Err(Error::invalid_input("lease", detail));
        }
        let identity = Uuid::new_v4().simple().to_string();
        Ok(Self { client: client.clone(), path, duration, identity, slots: None })
    }

    /// Sets the identity that holds the lease. The default is a random identity that only this value and its
    /// clones have. An identity holds at most one lease, and still holds it after a restart of the process.
    #[must_use]
    pub fn identity(self, identity: impl Into<String>) -> Self {
        Self { identity: identity.into(), ..self }
    }

    /// Sets the number of leases that may be held at the same time, each in its own slot at `<path>/<n>`. All
    /// contenders at the path need the same number.
    #[must_use]
    pub fn slots(self, slots: u32) -> Self {
        Self { slots: Some(slots), ..self }
    }

    /// Returns the path that was passed to the constructor.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Obtains the lease if it is free, expired, or already held by this identity; in the last case the lease
    /// is extended. Returns `None` if other identities hold the lease in all slots. Waits only for contenders
    /// that check the lease at the same time.
    ///
    /// # Errors
    /// [`AcquireError::Core`] with `NoAuth`, `TooLarge` or `Closed`; with `Timeout` if the whole call took
    /// longer than the operation timeout; with `OutcomeUnknown` if the lease may have been obtained; and the
    /// errors of [`Mutex::acquire`]. A node in another format counts as held.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the lease may have been obtained.
    pub fn try_obtain(&self) -> impl Future<Output = Result<Option<Obtained>, AcquireError>> + Send + use<> {
        let lease = self.clone();
        async move { Box::pin(lease.try_slots()).await.in_operation("try_obtain") }
    }

    async fn try_slots(&self) -> Result<Option<Obtained>, AcquireError> {
        let Some(slots) = self.slots else { return self.try_slot(0, &self.path).await };
        // The own slot comes first, to extend its lease. If that lease has expired, another process may take
        // the slot meanwhile.
        let mut own = None;
        for slot in 0..slots {
            if self.holds(&self.slot(slot)).await? {
                own = Some(slot);
                break;
            }
        }
        for slot in own.into_iter().chain((0..slots).filter(|slot| Some(*slot) != own)) {
            if let Some(obtained) = self.try_slot(slot, &self.slot(slot)).await? {
                return Ok(Some(obtained));
            }
            if own.is_some() && planted!(OldSlotAlone) {
                break;
            }
        }
        Ok(None)
    }

    /// Gives the lease back before its end. Returns false if this identity does not hold it.
    ///
    /// # Errors
    /// Those of [`try_obtain`](Self::try_obtain).
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the lease may have been given back.
    pub fn give_back(&self) -> impl Future<Output = Result<bool, AcquireError>> + Send + use<> {
        let lease = self.clone();
        async move { Box::pin(lease.delete_own()).await.in_operation("give_back") }
    }

    async fn delete_own(&self) -> Result<bool, AcquireError> {
        let paths = match self.slots {
            Some(slots) => (0..slots).map(|slot| self.slot(slot)).collect(),
            None => vec![self.path.as_str().to_owned()],
        };
        for path in paths {
            if self.holds(&path).await? && self.delete(&path).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn slot(&self, slot: u32) -> String {
        format!("{}/{slot}", self.path)
    }

    /// Returns whether this identity holds the lease at `path`, expired or not.
    async fn holds(&self, path: &str) -> Result<bool, Error> {
        let holder = self.read(path).await?.and_then(|node| Holder::decode(&node.data));
        Ok(holder.is_some_and(|holder| holder.identity == self.identity))
    }

    async fn try_slot(&self, slot: u32, path: &str) -> Result<Option<Obtained>, AcquireError> {
        let guard = self.lock(path).await?;
        // `begun` first, so that the lease never seems to last longer by the monotonic clock.
        let (begun, now) = (Instant::now(), SystemTime::now());
        let current = self.read(path).await?;
        if current.as_ref().is_some_and(|node| !self.is_free(node, now)) {
            return Ok(None);
        }
        let end = whole_seconds(now + self.duration);
        let data = Holder { identity: self.identity.clone(), end }.encode();
        let (path, all) = (holder_path(path), guard.transaction());
        let all = match current {
            Some(node) => all.set(&path, data, node.stat.version),
            None => all.create(&path, data, CreateMode::Persistent),
        };
        match all.commit_exactly().await {
            Ok(_) => {}
            // Another program wrote the node without holding the lock.
            Err(error) if matches!(error.kind(), ErrorKind::BadVersion | ErrorKind::NodeExists) => {
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        }
        Ok(Some(Obtained { slot, end, last: begun.checked_add(self.duration) }))
    }

    async fn delete(&self, path: &str) -> Result<bool, AcquireError> {
        let guard = self.lock(path).await?;
        let Some(node) = self.read(path).await? else { return Ok(false) };
        if Holder::decode(&node.data).is_none_or(|holder| holder.identity != self.identity) {
            return Ok(false);
        }
        guard.transaction().delete(&holder_path(path), node.stat.version).commit_exactly().await?;
        Ok(true)
    }

    /// Acquires the lock under which the lease at `path` is read and changed. Dropping the guard releases it.
    async fn lock(&self, path: &str) -> Result<MutexGuard, AcquireError> {
        let line = Line::new(&self.client, path, &KIND, MARKER)?.with_own_child(HOLDER);
        let mutex = Mutex::of(line);
        // Does not use the ambient owner, which may hold a lock of this path.
        let acquire = mutex.acquire_as(&Owner::default());
        Box::pin(recipe::in_time(&self.client, "obtain", path, acquire)).await
    }

    async fn read(&self, path: &str) -> Result<Option<Node>, Error> {
        recipe::if_exists(self.client.get(&holder_path(path)).await)
    }

    fn is_free(&self, node: &Node, now: SystemTime) -> bool {
        Holder::decode(&node.data).is_some_and(|holder| holder.identity == self.identity || holder.end <= now)
    }
}

fn holder_path(path: &str) -> String {
    format!("{path}/{HOLDER}")
}

fn whole_seconds(time: SystemTime) -> SystemTime {
    let seconds = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

impl fmt::Debug for TimedLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_handle(f, "TimedLease", self.path(), &self.client)
            .field("duration", &self.duration)
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}

/// A [`TimedLease`](crate::TimedLease) that was obtained, with its end. This is not a guard: dropping it does
/// nothing, and the end of the lease is not signalled.
#[derive(Debug, Clone)]
pub struct Obtained {
    slot: u32,
    end: SystemTime,
    /// Time until which the lease lasts by this machine's monotonic clock, independent of changes of its
    /// system clock.
    last: Option<Instant>,
}

impl Obtained {
    /// Returns the number of the slot, counted from 0; 0 for a lease with one slot.
    pub fn slot(&self) -> u32 {
        self.slot
    }

    /// Returns the time at which other identities may obtain the lease, by their clocks.
    pub fn end(&self) -> SystemTime {
        self.end
    }

    /// Returns the time that is left, by the clock of this machine; zero once the lease has expired. Machines
    /// whose clocks are ahead consider the lease expired earlier, by that difference.
    pub fn remaining(&self) -> Duration {
        let by_clock = self.end.duration_since(SystemTime::now()).unwrap_or_default();
        let passed = |last: Instant| last.saturating_duration_since(Instant::now());
        by_clock.min(self.last.map_or(Duration::MAX, passed))
    }

    /// Returns whether time is [left](Self::remaining).
    pub fn is_valid(&self) -> bool {
        !self.remaining().is_zero()
    }
}
