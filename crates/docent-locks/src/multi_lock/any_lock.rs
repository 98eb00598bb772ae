use crate::{AcquireError, Mutex, Owner, RwLock};
use docent_core::Fence;
use docent_core::recipe::{Hold, Line};
use std::fmt;
use std::sync::Arc;

/// A lock that a [`MultiLock`](crate::MultiLock) can be made of: a [`Mutex`], or a side of an [`RwLock`],
/// which [`reading`](RwLock::reading) and [`writing`](RwLock::writing) give.
#[derive(Clone)]
pub struct AnyLock(Kind);

#[derive(Debug, Clone)]
enum Kind {
    Mutex(Mutex),
    Read(RwLock),
    Write(RwLock),
}

impl AnyLock {
    /// The path, as it was given.
    pub fn path(&self) -> &str {
        self.line().path()
    }

    pub(crate) fn line(&self) -> &Line {
        match &self.0 {
            Kind::Mutex(mutex) => &mutex.line,
            Kind::Read(lock) => &lock.readers,
            Kind::Write(lock) => &lock.writers,
        }
    }

    /// Acquires it for `owner`; only if that needs no waiting unless it `waits`.
    pub(crate) async fn hold(
        &self,
        owner: &Owner,
        waits: bool,
    ) -> Result<(Arc<Hold>, Option<Fence>), AcquireError> {
        let owner = owner.clone();
        Ok(match (&self.0, waits) {
            (Kind::Mutex(mutex), true) => fenced(mutex.acquire_as(&owner).await?.into_hold()),
            (Kind::Mutex(mutex), false) => {
                fenced(owner.within(async { mutex.try_acquire().await }).await?.into_hold())
            }
            (Kind::Write(lock), true) => fenced(lock.write_as(&owner).await?.into_hold()),
            (Kind::Write(lock), false) => {
                fenced(owner.within(async { lock.try_write().await }).await?.into_hold())
            }
            (Kind::Read(lock), waits) => {
                let read = if waits {
                    lock.read_as(&owner).await?
                } else {
                    owner.within(async { lock.try_read().await }).await?
                };
                let fence = read.fence();
                (read.into_hold(), fence)
            }
        })
    }
}

fn fenced(hold: Arc<Hold>) -> (Arc<Hold>, Option<Fence>) {
    let fence = hold.fence();
    (hold, Some(fence))
}

impl From<Mutex> for AnyLock {
    fn from(mutex: Mutex) -> Self {
        Self(Kind::Mutex(mutex))
    }
}

impl From<&Mutex> for AnyLock {
    fn from(mutex: &Mutex) -> Self {
        mutex.clone().into()
    }
}

impl RwLock {
    /// Its readers' side, for a [`MultiLock`](crate::MultiLock).
    pub fn reading(&self) -> AnyLock {
        AnyLock(Kind::Read(self.clone()))
    }

    /// Its writers' side, for a [`MultiLock`](crate::MultiLock).
    pub fn writing(&self) -> AnyLock {
        AnyLock(Kind::Write(self.clone()))
    }
}

impl fmt::Debug for AnyLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
