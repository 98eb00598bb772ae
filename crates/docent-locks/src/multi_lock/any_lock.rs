use crate::acquire::{LockSide, Progress, enter, try_enter};
use crate::{AcquireError, Mutex, Owner, RwLock};
use docent_core::recipe::{Hold, Line, debug_handle};
use std::fmt;
use std::sync::Arc;

/// A lock that can be part of a [`MultiLock`](crate::MultiLock): a [`Mutex`], or one side of an [`RwLock`].
/// [`reading`](RwLock::reading) and [`writing`](RwLock::writing) return a side.
#[derive(Clone)]
pub struct AnyLock(LockSide);

impl AnyLock {
    /// Returns the path that was passed to the lock's constructor.
    pub fn path(&self) -> &str {
        self.line().path()
    }

    pub(crate) fn line(&self) -> &Line {
        &self.0.line
    }

    /// Acquires the lock for `owner`. Unless it `waits`, fails if the lock is not free.
    pub(crate) async fn hold(
        &self,
        owner: &Owner,
        waits: bool,
        progress: Progress,
    ) -> Result<Arc<Hold>, AcquireError> {
        let (owner, side) = (Some(owner.clone()), self.0.clone());
        let hold = match waits {
            true => enter(owner, side, progress).await?,
            false => try_enter(owner, side, progress).await?,
        };
        hold.own()
    }
}

impl From<Mutex> for AnyLock {
    fn from(mutex: Mutex) -> Self {
        Self(mutex.line.into())
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
        AnyLock(self.to_read())
    }

    /// Returns the writers' side, for a [`MultiLock`](crate::MultiLock).
    pub fn writing(&self) -> AnyLock {
        AnyLock(self.to_write())
    }
}

impl fmt::Debug for AnyLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = self.line();
        debug_handle(f, "AnyLock", self.path(), line.client())
            .field("role", &line.role())
            .finish_non_exhaustive()
    }
}
