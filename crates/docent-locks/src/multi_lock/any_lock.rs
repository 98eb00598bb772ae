use crate::acquire::{LockSide, Progress, enter, try_enter};
use crate::{AcquireError, Mutex, Owner, RwLock};
use docent_core::recipe::{Hold, Line};
use docent_core::{Fence, Held};
use std::fmt;
use std::sync::Arc;

/// A lock that can be part of a [`MultiLock`](crate::MultiLock): a [`Mutex`], or one side of an [`RwLock`].
/// [`reading`](RwLock::reading) and [`writing`](RwLock::writing) return a side.
#[derive(Clone)]
pub struct AnyLock(Kind);

#[derive(Debug, Clone)]
enum Kind {
    Mutex(Mutex),
    Read(RwLock),
    Write(RwLock),
}

impl AnyLock {
    /// Returns the path that was passed to the lock's constructor.
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

    /// Acquires the lock for `owner`. Unless it `waits`, fails if the lock is not free.
    pub(crate) async fn hold(
        &self,
        owner: &Owner,
        waits: bool,
        progress: Progress,
    ) -> Result<(Arc<Hold>, Option<Fence>), AcquireError> {
        let (owner, side) = (Some(owner.clone()), self.side());
        let hold = match waits {
            true => enter(owner, side, progress).await?,
            false => try_enter(owner, side, progress).await?,
        };
        let hold = hold.own()?;
        let fence = match &self.0 {
            Kind::Read(_) => Held::fence(&hold),
            Kind::Mutex(_) | Kind::Write(_) => Some(hold.fence()),
        };
        Ok((hold, fence))
    }

    fn side(&self) -> LockSide {
        match &self.0 {
            Kind::Mutex(mutex) => mutex.line.clone().into(),
            Kind::Read(lock) => lock.to_read(),
            Kind::Write(lock) => lock.to_write(),
        }
    }
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
    /// Returns the readers' side, for a [`MultiLock`](crate::MultiLock).
    pub fn reading(&self) -> AnyLock {
        AnyLock(Kind::Read(self.clone()))
    }

    /// Returns the writers' side, for a [`MultiLock`](crate::MultiLock).
    pub fn writing(&self) -> AnyLock {
        AnyLock(Kind::Write(self.clone()))
    }
}

impl fmt::Debug for AnyLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
