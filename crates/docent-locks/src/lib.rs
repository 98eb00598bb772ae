#![doc = include_str!("../README.md")]

mod acquire;
mod error;
mod guard;
mod mutex;
mod mutex_guard;
mod owner;
mod rw_lock;

pub use error::AcquireError;
pub use mutex::Mutex;
pub use mutex_guard::MutexGuard;
pub use owner::Owner;
pub use rw_lock::{ReadGuard, RwLock, WriteGuard};
