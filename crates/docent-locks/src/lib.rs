#![doc = include_str!("../README.md")]

mod acquire;
mod barrier;
mod error;
mod multi_guard;
mod multi_lock;
mod mutex;
mod mutex_guard;
mod owner;
mod permit;
mod rw_lock;
mod semaphore;

pub use barrier::{Barrier, DoubleBarrier, Entered};
pub use error::AcquireError;
pub use multi_guard::MultiGuard;
pub use multi_lock::{AnyLock, MultiLock};
pub use mutex::{Mutex, MutexBuilder};
pub use mutex_guard::MutexGuard;
pub use owner::Owner;
pub use permit::Permit;
pub use rw_lock::{ReadGuard, RwLock, RwLockBuilder, WriteGuard};
pub use semaphore::{Semaphore, SharedLimit};
