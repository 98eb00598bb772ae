use super::AnyLock;
use crate::acquire::{Progress, in_time, wait_out, with_timeout};
use crate::{AcquireError, Owner};
use docent_core::recipe::{HoldSet, Line};
use docent_core::{Error, Fence, Guard, Held, Released, planted};
use std::future::Future;
use std::ops::Deref;
use std::time::Duration;

/// Several locks as one: a guard holds all of them or none.
///
/// # Expected flow
/// The locks are acquired one after another, in the order of their paths and not in the order in which they
/// were passed. Therefore two [`MultiLock`]s never deadlock with each other. If a lock fails or times out, or
/// the call is cancelled, the locks acquired so far are released.
///
/// # Guarantees
/// - Each lock keeps its own guarantees: mutual exclusion, fairness, and a fence for each path.
/// - The guard is lost as soon as one of its locks is lost; the other locks are released with the guard.
/// - One deadline covers all locks: [`acquire_timeout`](Self::acquire_timeout) bounds the whole call.
/// - If a lock is lost while the call waits for another lock, the call releases the others and acquires all
///   locks again, at the end of their lines. Before the guard is returned, one more round trip to a quorum
///   confirms that all locks were held at the same time.
///
/// # Assumptions
/// All locks belong to one client. No process holds one of these locks separately while it waits for another:
/// that process and the `MultiLock` could deadlock, as with any locks. Curator's `InterProcessMultiLock`
/// takes its locks in the order of its list: sort that list by path.
///
/// # Re-entry
/// Re-entry is by [`Owner`], as for each single lock. A hold that the owner already has is shared, and
/// remains held when the guard is dropped.
#[derive(Debug, Clone)]
pub struct MultiLock {
    /// Locks in the order of their paths.
    locks: Vec<AnyLock>,
}

impl MultiLock {
    /// Combines `locks`: mutexes, or [sides](crate::RwLock::writing) of read/write locks. In a list of both,
    /// [`AnyLock::from`] turns a mutex into the type of a side.
    ///
    /// # Errors
    /// `InvalidInput` if there are no locks, if a path is given twice, or if the locks belong to different
    /// clients.
    ///
    /// # Examples
    /// ```no_run
    /// # fn example(client: docent_core::Client) -> Result<(), docent_core::Error> {
    /// use docent_locks::{AnyLock, MultiLock, Mutex, RwLock};
    ///
    /// let (a, b) = (Mutex::new(&client, "/locks/a")?, Mutex::new(&client, "/locks/b")?);
    /// let prices = RwLock::new(&client, "/locks/prices")?;
    /// let mutexes = MultiLock::new([&a, &b])?;
    /// let mixed = MultiLock::new([AnyLock::from(&a), AnyLock::from(&b), prices.reading()])?;
    /// # Ok(()) }
    /// ```
    pub fn new<L: Into<AnyLock>>(locks: impl IntoIterator<Item = L>) -> Result<Self, Error> {
        let mut locks: Vec<AnyLock> = locks.into_iter().map(Into::into).collect();
        let invalid = |detail: String| Err(Error::invalid_input("multi_lock", detail));
        let Some(first) = locks.first() else { return invalid("at least one lock must be given".to_owned()) };
        if let Some(other) = locks.iter().find(|lock| !lock.line().shares_client(first.line())) {
            return invalid(format!(
                "lock {:?} must belong to the same client as {:?}",
                other.path(),
                first.path()
            ));
        }
        locks.sort_by(|one, other| one.path().cmp(other.path()));
        if let Some(pair) = locks.windows(2).find(|pair| pair[0].path() == pair[1].path()) {
            return invalid(format!("lock {:?} must be given only once", pair[0].path()));
        }
        Ok(Self { locks })
    }

    /// Returns the paths of the locks, in the order in which they are acquired.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.locks.iter().map(AnyLock::path)
    }

    /// Acquires all locks, waiting as long as necessary. Inside an [`Owner::scope`], re-enters the locks that
    /// the ambient owner holds. The ambient owner is determined when this method is called, not at the first
    /// poll.
    ///
    /// # Errors
    /// The error of the first lock that failed. No lock is held then.
    ///
    /// # Cancel safety
    /// This method is cancel safe, but cancelling it loses your place in the queue of every lock.
    pub fn acquire(&self) -> impl Future<Output = Result<MultiGuard, AcquireError>> + Send + use<> {
        self.acquire_as(&Owner::current().unwrap_or_default())
    }

    /// Acquires all locks for `owner`, like [`acquire`](Self::acquire).
    ///
    /// # Errors
    /// Those of [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    /// This method is cancel safe, but cancelling it loses your place in the queue of every lock.
    pub fn acquire_as(
        &self,
        owner: &Owner,
    ) -> impl Future<Output = Result<MultiGuard, AcquireError>> + Send + use<> {
        self.enter(owner.clone(), Progress::unrecorded())
    }

    fn enter(
        &self,
        owner: Owner,
        progress: Progress,
    ) -> impl Future<Output = Result<MultiGuard, AcquireError>> + Send + use<> {
        let multi = self.clone();
        async move {
            loop {
                match Box::pin(multi.take(&owner, true, &progress)).await {
                    Ok(Some(guard)) => return Ok(guard),
                    Ok(None) => {
                        // Event: One lock of a multi-lock was lost while the client waited for the other
                        // locks. It acquires all locks again.
                        tracing::debug!(
                            target: "docent::lock",
                            client = %multi.first().client().label(),
                            "lost a lock while waiting for the others; acquiring all locks again"
                        );
                    }
                    Err(error) => wait_out(multi.first(), error).await?,
                }
            }
        }
    }

    /// Acquires all locks if each is free or held by the ambient owner.
    ///
    /// # Errors
    /// [`AcquireError::Busy`] if a lock is not free; `Timeout` if the whole call took longer than the
    /// operation timeout; otherwise those of [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn try_acquire(&self) -> impl Future<Output = Result<MultiGuard, AcquireError>> + Send + use<> {
        let (multi, owner) = (self.clone(), Owner::current().unwrap_or_default());
        async move {
            let progress = Progress::recorded();
            let taken = in_time(multi.first(), &progress, multi.take(&owner, false, &progress)).await?;
            // `None` means that a lock was lost while the others were being taken.
            taken.ok_or_else(|| AcquireError::busy(multi.first().path()))
        }
    }

    /// Acquires all locks, like [`acquire`](Self::acquire), waiting at most `timeout` for the whole call.
    ///
    /// # Errors
    /// [`AcquireError::TimedOut`] if the timeout expired: no lock is held, and all tickets are being removed.
    /// Otherwise those of [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    /// This method is cancel safe, but cancelling it loses your place in the queue of every lock.
    pub fn acquire_timeout(
        &self,
        timeout: Duration,
    ) -> impl Future<Output = Result<MultiGuard, AcquireError>> + Send + use<> {
        let (owner, progress) = (Owner::current().unwrap_or_default(), Progress::recorded());
        let acquire = self.enter(owner, progress.clone());
        with_timeout(timeout, self.first().clone(), progress, acquire)
    }

    /// Returns the line of the first lock.
    fn first(&self) -> &Line {
        self.locks[0].line()
    }

    /// Takes the locks one after another. Returns `None` if a lock was lost before all were held.
    async fn take(
        &self,
        owner: &Owner,
        waits: bool,
        progress: &Progress,
    ) -> Result<Option<MultiGuard>, AcquireError> {
        let (mut holds, mut fences) = (Vec::new(), Vec::new());
        for lock in &self.locks {
            let hold = Box::pin(lock.hold(owner, waits, progress.clone()));
            let taken = if holds.is_empty() || planted!(SetUnproven) {
                hold.await
            } else {
                match HoldSet::new(holds.clone())?.run(hold).await {
                    Ok(taken) => taken,
                    Err(_) => return Ok(None),
                }
            };
            if taken.is_err() && planted!(PartOfSetKept) {
                std::mem::forget(std::mem::take(&mut holds));
            }
            let hold = taken?;
            fences.extend(Held::fence(&hold).map(|fence| (lock.path().to_owned(), fence)));
            holds.push(hold);
        }
        Ok(HoldSet::together(holds).await?.map(|hold| MultiGuard { hold, fences }))
    }
}

/// Guard of all locks of a [`MultiLock`](crate::MultiLock). It is lost as soon as one of the locks is lost;
/// the other locks are held until the guard is dropped. Dereferences to [`Held`], which reports whether all
/// locks are still held.
///
/// # On drop
/// All locks are released in the background, except holds that their owner shares with other guards. The
/// deletes are submitted immediately and retried until they succeed. The drop never blocks or panics, even
/// outside a runtime. Call [`release`](Self::release) to wait until the nodes are deleted.
#[derive(Debug)]
#[must_use = "the locks are released when the guard is dropped"]
pub struct MultiGuard {
    hold: HoldSet,
    fences: Vec<(String, Fence)>,
}

impl MultiGuard {
    /// Returns the fencing token of the lock at `path`, or `None` if that lock is a read lock or not part of
    /// the set.
    pub fn fence(&self, path: &str) -> Option<Fence> {
        self.fences().find_map(|(own, fence)| (own == path).then_some(fence))
    }

    /// Returns the fencing tokens, each with its path. Read locks have no fencing token.
    pub fn fences(&self) -> impl Iterator<Item = (&str, Fence)> {
        self.fences.iter().map(|(path, fence)| (path.as_str(), *fence))
    }

    /// Releases all locks and waits until their nodes are deleted, at most for the operation timeout and
    /// until the end of the lease. [`Released::Pending`] is returned if that takes longer, as in an outage:
    /// the locks are then released in the background or with their session.
    ///
    /// # Errors
    /// `Lost` if a lock was lost before this call. `NoAuth` and other refusals of the servers. `Closed` if
    /// the client was closed: the locks are then released with their session. An error of one lock does not
    /// prevent the release of the others.
    ///
    /// # Cancel safety
    /// This method is cancel safe: the release continues in the background.
    pub async fn release(self) -> Result<Released, Error> {
        self.hold.release().await
    }
}

impl Deref for MultiGuard {
    type Target = Held;

    fn deref(&self) -> &Held {
        &self.hold
    }
}

impl Guard for MultiGuard {
    fn release(self) -> impl Future<Output = Result<Released, Error>> + Send {
        Self::release(self)
    }
}
