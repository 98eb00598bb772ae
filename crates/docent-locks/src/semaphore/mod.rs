//! The semaphore, its permits and their limit.

mod builder;
mod node;
mod participants;
mod permit;
mod permits;
#[expect(clippy::module_inception, reason = "the folder is named after its main module")]
mod semaphore;
mod shared_limit;

pub use builder::SemaphoreBuilder;
pub use permit::Permit;
pub use semaphore::Semaphore;
pub(crate) use shared_limit::Limit;
pub use shared_limit::SharedLimit;
