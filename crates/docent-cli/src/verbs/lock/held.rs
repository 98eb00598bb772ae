use docent::locks::{MutexGuard, Permit, ReadGuard, WriteGuard};
use docent::recipe::{AsHold, HoldRef};
use docent::{Error, Fence};

/// Guard of a lock of any kind.
#[derive(Debug)]
pub(super) enum Held {
    Mutex(MutexGuard),
    Read(ReadGuard),
    Write(WriteGuard),
    Permits(Permit),
}

impl AsHold for Held {
    fn as_hold(&self) -> HoldRef<'_> {
        match self {
            Self::Mutex(guard) => guard.as_hold(),
            Self::Read(guard) => guard.as_hold(),
            Self::Write(guard) => guard.as_hold(),
            Self::Permits(permit) => permit.as_hold(),
        }
    }

    fn hold_fence(&self) -> Option<Fence> {
        match self {
            Self::Mutex(guard) => guard.hold_fence(),
            Self::Read(guard) => guard.hold_fence(),
            Self::Write(guard) => guard.hold_fence(),
            Self::Permits(permit) => permit.hold_fence(),
        }
    }

    async fn into_released(self) -> Result<(), Error> {
        match self {
            Self::Mutex(guard) => guard.release().await,
            Self::Read(guard) => guard.release().await,
            Self::Write(guard) => guard.release().await,
            Self::Permits(permit) => permit.release().await,
        }
    }
}
