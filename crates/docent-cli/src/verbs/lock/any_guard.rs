use docent::Error;
use docent::guard::{Guard, Held, Released};
use docent::locks::{MutexGuard, Permit, ReadGuard, WriteGuard};
use std::ops::Deref;

/// Guard of any kind of lock.
#[derive(Debug)]
pub(super) enum AnyGuard {
    Mutex(MutexGuard),
    Read(ReadGuard),
    Write(WriteGuard),
    Permits(Permit),
}

impl Deref for AnyGuard {
    type Target = Held;

    fn deref(&self) -> &Held {
        match self {
            Self::Mutex(guard) => guard,
            Self::Read(guard) => guard,
            Self::Write(guard) => guard,
            Self::Permits(permit) => permit,
        }
    }
}

impl Guard for AnyGuard {
    async fn release(self) -> Result<Released, Error> {
        match self {
            Self::Mutex(guard) => guard.release().await,
            Self::Read(guard) => guard.release().await,
            Self::Write(guard) => guard.release().await,
            Self::Permits(permit) => permit.release().await,
        }
    }
}
