//! The semaphore, its permits and their limit.

mod permit;
mod permits;
#[expect(clippy::module_inception, reason = "the folder is about it")]
mod semaphore;
mod shared_limit;

pub use permit::Permit;
pub use semaphore::Semaphore;
pub use shared_limit::SharedLimit;
