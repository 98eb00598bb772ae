use super::Obtained;
use super::holder::Holder;
use crate::{AcquireError, Mutex, MutexGuard, Owner};
use docent_core::recipe::{self, Line, NodePath, RecipeKind, debug_handle};
use docent_core::{Client, CreateMode, Error, ErrorKind, Node, planted};
use std::fmt;
use std::future::Future;
use std::time::{Duration, Instant, SystemTime};
use uuid::Uuid;

static KIND: RecipeKind = RecipeKind::new("lease", "obtain");

/// Text before the number in a contender's name, as in kazoo's `Lock`.
const MARKER: &str = "__lock__";
/// Name of the node that says who holds the lease.
const HOLDER: &str = "lease_holder";
/// Least duration: ends are written in whole seconds.
const SHORTEST: Duration = Duration::from_secs(1);
/// Longest duration: the format has years of four digits.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// A lease on a name for a time: whoever obtains it has it until its end, also when its process or session is
/// gone by then. For jobs that run once in a while on one of many machines.
///
/// # Expected flow
/// Every machine calls [`try_obtain`](Self::try_obtain) when the job is due. One gets the lease and does the
/// job; the others get `None`, as long as it lasts. The one that has it can call it again to begin the time
/// anew.
///
/// The layout is that of kazoo's `NonBlockingLease`, and with [several slots](Self::slots) of its
/// `MultiNonBlockingLease`: a persistent node `lease_holder` with holder and end, which is changed under
/// kazoo's lock. Both exclude each other.
///
/// # Guarantees
/// One identity has the lease until its end, as far as the clocks of the machines agree. Writes are exact: a
/// lost reply neither hides a lease that was obtained nor obtains one for a call that failed and is over.
///
/// # Caveats
/// It rests on the clocks of the machines, unlike all other locks here: by as much as they differ two may
/// have it. It has no fence and nobody is told when it ends. Where that matters take a [`Mutex`].
#[derive(Clone)]
pub struct TimedLease {
    client: Client,
    path: NodePath,
    duration: Duration,
    identity: String,
    slots: Option<u32>,
}

impl TimedLease {
    /// The lease at `path`, which lasts for `duration` from when it is obtained; its end is rounded down to
    /// whole seconds.
    ///
    /// # Errors
    /// `InvalidInput` when the path breaks a rule, or the duration is not from 1 s to 100 years.
    pub fn new(client: &Client, path: &str, duration: Duration) -> Result<Self, Error> {
        let path = NodePath::new("lease", path)?;
        if !(SHORTEST..=LONGEST).contains(&duration) {
            let detail = format!("duration {duration:?} must be from 1 s to 100 years");
            return Err(Error::invalid_input("lease", detail));
        }
        let identity = Uuid::new_v4().simple().to_string();
        Ok(Self { client: client.clone(), path, duration, identity, slots: None })
    }

    /// Sets the identity that holds the lease; by default one that this value and its clones have alone.
    /// One identity has one lease, also after a restart.
    #[must_use]
    pub fn identity(self, identity: impl Into<String>) -> Self {
        Self { identity: identity.into(), ..self }
    }

    /// Lets so many have the lease at a time, each in a slot of its own at `<path>/<n>`. Everybody at the
    /// path needs the same.
    #[must_use]
    pub fn slots(self, slots: u32) -> Self {
        Self { slots: Some(slots), ..self }
    }

    /// The path, as it was given.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Obtains the lease if it is free, over, or this one's already: then its time begins anew. `None` while
    /// somebody else has it, in all slots. Waits for nobody but those who look at the same time.
    ///
    /// # Errors
    /// [`AcquireError::Core`] with `NoAuth`, `TooLarge`, `Timeout` when it took longer than the operation
    /// timeout in all, `Closed`, and those of [`Mutex::acquire`]; with `OutcomeUnknown` it may have been
    /// obtained. A node in another format counts as held.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: it may have been obtained.
    pub fn try_obtain(&self) -> impl Future<Output = Result<Option<Obtained>, AcquireError>> + Send + use<> {
        let lease = self.clone();
        async move { Box::pin(lease.try_slots()).await }
    }

    async fn try_slots(&self) -> Result<Option<Obtained>, AcquireError> {
        let Some(slots) = self.slots else { return self.try_slot(0, &self.path).await };
        // The own slot first, to extend that lease. If it was over, another process may take the slot
        // meanwhile.
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

    /// Gives the lease back before its end. False when this one does not have it.
    ///
    /// # Errors
    /// As [`try_obtain`](Self::try_obtain).
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: it may have been given back.
    pub fn give_back(&self) -> impl Future<Output = Result<bool, AcquireError>> + Send + use<> {
        let lease = self.clone();
        async move { Box::pin(lease.delete_own()).await }
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

    /// True when this one has the lease at `path`, over or not.
    async fn holds(&self, path: &str) -> Result<bool, Error> {
        let holder = self.read(path).await?.and_then(|node| Holder::decode(&node.data));
        Ok(holder.is_some_and(|holder| holder.identity == self.identity))
    }

    async fn try_slot(&self, slot: u32, path: &str) -> Result<Option<Obtained>, AcquireError> {
        let guard = self.lock(path).await?;
        let (begun, now) = (Instant::now(), SystemTime::now());
        let known = self.read(path).await?;
        if known.as_ref().is_some_and(|node| !self.is_free(node, now)) {
            return Ok(None);
        }
        let end = whole_seconds(now + self.duration);
        let data = Holder { identity: self.identity.clone(), end }.encode();
        let (path, all) = (holder_path(path), guard.transaction());
        let all = match known {
            Some(node) => all.set(&path, data, node.stat.version),
            None => all.create(&path, data, CreateMode::Persistent),
        };
        match all.commit_exactly().await {
            Ok(_) => {}
            // Somebody wrote it without the lock.
            Err(error) if matches!(error.kind(), ErrorKind::BadVersion | ErrorKind::NodeExists) => {
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        }
        Ok(Some(Obtained::new(slot, end, begun, self.duration)))
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

    /// The lock under which the lease at `path` is looked at and changed. Released by its drop.
    async fn lock(&self, path: &str) -> Result<MutexGuard, AcquireError> {
        let line = Line::new(&self.client, path, &KIND, MARKER)?.with_own_child(HOLDER);
        let mutex = Mutex::of(line);
        // Not as the ambient owner, which may hold a lock of this path.
        let acquire = mutex.acquire_as(&Owner::default());
        Box::pin(recipe::in_time(&self.client, "obtain", path, acquire)).await
    }

    async fn read(&self, path: &str) -> Result<Option<Node>, Error> {
        match self.client.get(&holder_path(path)).await {
            Ok(node) => Ok(Some(node)),
            Err(error) if error.kind() == ErrorKind::NoNode => Ok(None),
            Err(error) => Err(error),
        }
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
