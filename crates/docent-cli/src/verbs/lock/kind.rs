use super::Arguments;
use super::any_guard::AnyGuard;
use super::arguments::Permits;
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

/// Minimum time for servers to answer, even if the lock is not waited for.
const CONNECT: Duration = Duration::from_secs(5);

/// Shortest wait that leaves time for a round trip.
const ROUND_TRIP: Duration = Duration::from_secs(1);

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

    /// Returns the maximum time from the start to an answer about a lock that is not waited for. `timeout` is
    /// that of `--timeout`.
    pub(super) fn answer_limit(&self, timeout: Option<Duration>) -> Option<Duration> {
        matches!(self.patience(), Patience::None).then(|| timeout.unwrap_or(CONNECT))
    }

    /// Returns the maximum time to connect if `--timeout` is not given: a short wait for the lock also means
    /// a short wait for servers.
    pub(super) fn connect_limit(&self) -> Option<Duration> {
        match self.patience() {
            Patience::None => Some(CONNECT),
            Patience::Until(time) => Some(time.max(CONNECT)),
            Patience::Endless => None,
        }
    }
}

impl Lock {
    /// Creates the requested lock.
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

    /// Acquires the lock. A free lock is acquired even if the wait is very short.
    ///
    /// # Cancel safety
    /// This method is cancel safe, but cancelling it loses your place in the queue.
    pub(super) async fn acquire(&self, patience: Patience) -> Result<AnyGuard, AcquireError> {
        match patience {
            Patience::None => self.try_acquire().await,
            Patience::Until(time) if time < ROUND_TRIP => match self.try_acquire().await {
                Err(AcquireError::Busy(_)) => self.acquire_timeout(time).await,
                tried => tried,
            },
            Patience::Until(time) => self.acquire_timeout(time).await,
            Patience::Endless => match self {
                Self::Mutex(lock) => lock.acquire().await.map(AnyGuard::Mutex),
                Self::Read(lock) => lock.read().await.map(AnyGuard::Read),
                Self::Write(lock) => lock.write().await.map(AnyGuard::Write),
                Self::Permits(lock, wanted) => lock.acquire_many(*wanted).await.map(AnyGuard::Permits),
            },
        }
    }

    async fn try_acquire(&self) -> Result<AnyGuard, AcquireError> {
        match self {
            Self::Mutex(lock) => lock.try_acquire().await.map(AnyGuard::Mutex),
            Self::Read(lock) => lock.try_read().await.map(AnyGuard::Read),
            Self::Write(lock) => lock.try_write().await.map(AnyGuard::Write),
            Self::Permits(lock, wanted) => lock.try_acquire_many(*wanted).await.map(AnyGuard::Permits),
        }
    }

    async fn acquire_timeout(&self, time: Duration) -> Result<AnyGuard, AcquireError> {
        match self {
            Self::Mutex(lock) => lock.acquire_timeout(time).await.map(AnyGuard::Mutex),
            Self::Read(lock) => lock.read_timeout(time).await.map(AnyGuard::Read),
            Self::Write(lock) => lock.write_timeout(time).await.map(AnyGuard::Write),
            Self::Permits(lock, wanted) => {
                lock.acquire_many_timeout(*wanted, time).await.map(AnyGuard::Permits)
            }
        }
    }

    /// Returns holders and waiters, in queue order.
    pub(super) async fn participants(&self) -> Result<Vec<Participant>, Error> {
        match self {
            Self::Mutex(lock) => lock.participants().await,
            Self::Read(lock) | Self::Write(lock) => lock.participants().await,
            Self::Permits(lock, _) => lock.participants().await,
        }
    }
}
