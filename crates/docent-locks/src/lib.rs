#![doc = include_str!("../README.md")]

mod acquire;
mod barrier;
mod error;
#[doc(hidden)]
pub mod internals;
mod multi_lock;
mod mutex;
mod not_acquired;
mod own_hold;
mod owner;
mod partition;
mod rw_lock;
mod semaphore;
mod shared_mutex;
mod timed_lease;

pub use barrier::{Barrier, BarrierError, DoubleBarrier, Entered};
pub use error::AcquireError;
pub use multi_lock::{AnyLock, MultiGuard, MultiLock};
pub use mutex::{Mutex, MutexBuilder, MutexGuard};
pub use not_acquired::NotAcquired;
pub use owner::Owner;
pub use partition::{Partitioner, PartitionerBuilder, Share, ShareEnd};
pub use rw_lock::{ReadGuard, RwLock, RwLockBuilder, WriteGuard};
pub use semaphore::{Permit, Semaphore, SemaphoreBuilder, SharedLimit};
pub use shared_mutex::{ParseTurnFenceError, SharedMutex, SharedMutexBuilder, SharedMutexGuard, TurnFence};
pub use timed_lease::{Obtained, TimedLease};
