use super::Arguments;
use super::arguments::Permits;
use super::held::Held;
use docent::locks::Participant;
use docent::locks::{AcquireError, Mutex, RwLock, Semaphore};
use docent::{Client, Error};
use std::time::Duration;

/// Lock of any kind.
#[derive(Debug)]
pub(super) enum Lock {
    Mutex(Mutex),
    Read(RwLock),
    Write(RwLock),
    Permits(Box<Semaphore>, u32),
}

/// How long to wait for a lock.
#[derive(Debug, Clone, Copy)]
pub(super) enum Patience {
    None,
    Until(Duration),
    Endless,
}

impl Arguments {
    pub(super) fn patience(&self) -> Patience {
        match self.wait {
            _ if self.nonblock => Patience::None,
            Some(time) => Patience::Until(time),
            None => Patience::Endless,
        }
    }
}

impl Lock {
    /// The lock that was asked for.
    pub(super) fn new(client: &Client, arguments: &Arguments) -> Result<Self, Error> {
        let path = &arguments.path;
        let kind = &arguments.kind;
        Ok(match kind.permits {
            Some(Permits { wanted, limit }) => {
                Self::Permits(Box::new(Semaphore::new(client, path, limit)?), wanted)
            }
            None if kind.shared => Self::Read(RwLock::new(client, path)?),
            None if kind.exclusive => Self::Write(RwLock::new(client, path)?),
            None => Self::Mutex(Mutex::new(client, path)?),
        })
    }

    /// Acquires it.
    ///
    /// # Cancel safety
    /// This method is cancel safe, but you lose your place in the line.
    pub(super) async fn acquire(&self, patience: Patience) -> Result<Held, AcquireError> {
        match self {
            Self::Mutex(lock) => match patience {
                Patience::None => lock.try_acquire().await,
                Patience::Until(time) => lock.acquire_timeout(time).await,
                Patience::Endless => lock.acquire().await,
            }
            .map(Held::Mutex),
            Self::Read(lock) => match patience {
                Patience::None => lock.try_read().await,
                Patience::Until(time) => lock.read_timeout(time).await,
                Patience::Endless => lock.read().await,
            }
            .map(Held::Read),
            Self::Write(lock) => match patience {
                Patience::None => lock.try_write().await,
                Patience::Until(time) => lock.write_timeout(time).await,
                Patience::Endless => lock.write().await,
            }
            .map(Held::Write),
            Self::Permits(lock, wanted) => match patience {
                Patience::None => lock.try_acquire_many(*wanted).await,
                Patience::Until(time) => lock.acquire_many_timeout(*wanted, time).await,
                Patience::Endless => lock.acquire_many(*wanted).await,
            }
            .map(Held::Permits),
        }
    }

    /// Holders and waiters, in the order of the line.
    pub(super) async fn participants(&self) -> Result<Vec<Participant>, Error> {
        match self {
            Self::Mutex(lock) => lock.participants().await,
            Self::Read(lock) | Self::Write(lock) => lock.participants().await,
            Self::Permits(lock, _) => lock.participants().await,
        }
    }
}
