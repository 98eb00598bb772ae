use super::AnyLock;
use crate::acquire::{in_time, wait_out, with_timeout};
use crate::progress::Progress;
use crate::{AcquireError, MultiGuard, Owner};
use docent_core::recipe::{HoldSet, Line};
use docent_core::{Error, planted};
use std::future::Future;
use std::time::Duration;

/// Several locks as one: all are held, or none.
///
/// # Expected flow
/// The locks are acquired one after the other, in the order of their paths, and not as they were given: so no
/// two [`MultiLock`]s wait for each other. The locks taken so far are released when one of them fails, times
/// out or is given up.
///
/// # Guarantees
/// - Each lock keeps its own: exclusion, fairness, a fence for each path.
/// - The guard is lost as soon as one of its locks is; the others are released with the guard.
/// - One deadline for all: [`acquire_timeout`](Self::acquire_timeout) bounds the whole call.
/// - A lock that is lost while others are waited for is noticed at once, and all are acquired anew. That all
///   were held at the same moment is asked of a quorum before the guard is given, in one more trip.
///
/// # Assumptions
/// All locks are of one client, and nobody holds one of them alone while waiting for another of them: that
/// could deadlock, as anywhere. Curator's `InterProcessMultiLock` takes its locks in the order of its list:
/// sort that by path.
///
/// # Re-entry
/// By [`Owner`], as for each lock alone. A hold that the owner has besides is shared, and left to it.
#[derive(Debug, Clone)]
pub struct MultiLock {
    /// The locks, in the order of their paths.
    locks: Vec<AnyLock>,
}

impl MultiLock {
    /// All of `locks`: mutexes, or [sides](crate::RwLock::writing) of read/write locks.
    ///
    /// # Errors
    /// `InvalidInput` when there is none, a path is given twice, or they are not of one client.
    pub fn new<L: Into<AnyLock>>(locks: impl IntoIterator<Item = L>) -> Result<Self, Error> {
        let mut locks: Vec<AnyLock> = locks.into_iter().map(Into::into).collect();
        let invalid = |detail: String| Err(Error::invalid_input("multi_lock", detail));
        let Some(first) = locks.first() else { return invalid("0 locks must be at least 1".to_owned()) };
        if let Some(other) = locks.iter().find(|lock| !lock.line().shares_client(first.line())) {
            return invalid(format!(
                "lock {:?} must be of the same client as {:?}",
                other.path(),
                first.path()
            ));
        }
        locks.sort_by(|one, other| one.path().cmp(other.path()));
        if let Some(pair) = locks.windows(2).find(|pair| pair[0].path() == pair[1].path()) {
            return invalid(format!("lock {:?} must be given once", pair[0].path()));
        }
        Ok(Self { locks })
    }

    /// The paths of the locks, in the order in which they are acquired.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.locks.iter().map(AnyLock::path)
    }

    /// Waits until all locks are acquired, however long others hold them. Inside an [`Owner::scope`] it
    /// re-enters what the ambient owner holds; the owner is the one at the time of this call, not of the
    /// first poll.
    ///
    /// # Errors
    /// The error of the first lock that failed: nothing is held then.
    ///
    /// # Cancel safety
    /// This method is cancel safe, but you lose your place in all lines.
    pub fn acquire(&self) -> impl Future<Output = Result<MultiGuard, AcquireError>> + Send + use<> {
        self.acquire_as(&Owner::current().unwrap_or_default())
    }

    /// As [`acquire`](Self::acquire), for `owner`.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    /// This method is cancel safe, but you lose your place in all lines.
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
                        tracing::debug!("a lock was lost while others were waited for, taking all anew");
                    }
                    Err(error) => wait_out(multi.first(), error).await?,
                }
            }
        }
    }

    /// Acquires all locks if each is free or held by the ambient owner.
    ///
    /// # Errors
    /// [`AcquireError::Busy`] when one is not; `Timeout` when it took longer than the operation timeout in
    /// all; else as [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn try_acquire(&self) -> impl Future<Output = Result<MultiGuard, AcquireError>> + Send + use<> {
        let (multi, owner) = (self.clone(), Owner::current().unwrap_or_default());
        async move {
            let progress = Progress::recorded();
            let taken = in_time(multi.first(), &progress, multi.take(&owner, false, &progress)).await?;
            // One was lost while the others were taken.
            taken.ok_or_else(|| AcquireError::busy(multi.first().path()))
        }
    }

    /// As [`acquire`](Self::acquire), for at most `timeout`, which bounds the whole call.
    ///
    /// # Errors
    /// [`AcquireError::TimedOut`] when that was not enough: nothing is held, and all tickets are being
    /// removed. Else as [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    /// This method is cancel safe, but you lose your place in all lines.
    pub fn acquire_timeout(
        &self,
        timeout: Duration,
    ) -> impl Future<Output = Result<MultiGuard, AcquireError>> + Send + use<> {
        let (owner, progress) = (Owner::current().unwrap_or_default(), Progress::recorded());
        let acquire = self.enter(owner, progress.clone());
        with_timeout(timeout, self.first().clone(), progress, acquire)
    }

    /// The line of the first lock.
    fn first(&self) -> &Line {
        self.locks[0].line()
    }

    /// Takes one after the other; `None` when one was lost before all were held.
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
            let (hold, fence) = taken?;
            holds.push(hold);
            fences.extend(fence.map(|fence| (lock.path().to_owned(), fence)));
        }
        Ok(HoldSet::together(holds).await?.map(|hold| MultiGuard::new(hold, fences)))
    }
}
