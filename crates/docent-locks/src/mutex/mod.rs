//! The mutex.

mod builder;
mod guard;
#[expect(clippy::module_inception, reason = "the folder is named after its main module")]
mod mutex;

pub use builder::MutexBuilder;
pub use guard::MutexGuard;
pub use mutex::Mutex;
