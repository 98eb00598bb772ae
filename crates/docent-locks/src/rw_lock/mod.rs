//! The read/write lock.

mod builder;
mod lock;
mod read_guard;
mod write_guard;

pub use builder::RwLockBuilder;
pub use lock::RwLock;
pub use read_guard::ReadGuard;
pub use write_guard::WriteGuard;
