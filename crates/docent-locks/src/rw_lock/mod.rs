//! The read/write lock.

mod lock;
mod read_guard;
mod write_guard;

pub use lock::{RwLock, RwLockBuilder};
pub use read_guard::ReadGuard;
pub use write_guard::WriteGuard;
