#![doc = include_str!("../README.md")]

mod acquire;
mod any_lock;
mod barrier;
mod double_barrier;
mod entered;
mod error;
mod multi_guard;
mod multi_lock;
mod mutex;
mod mutex_builder;
mod mutex_guard;
mod owner;
mod permit;
mod permits;
mod rw_lock;
mod semaphore;
mod shared_limit;

pub use any_lock::AnyLock;
pub use barrier::Barrier;
pub use double_barrier::DoubleBarrier;
pub use entered::Entered;
pub use error::AcquireError;
pub use multi_guard::MultiGuard;
pub use multi_lock::MultiLock;
pub use mutex::Mutex;
pub use mutex_builder::MutexBuilder;
pub use mutex_guard::MutexGuard;
pub use owner::Owner;
pub use permit::Permit;
pub use rw_lock::{ReadGuard, RwLock, RwLockBuilder, WriteGuard};
pub use semaphore::Semaphore;
pub use shared_limit::SharedLimit;
