//! The mutex.

mod builder;
#[expect(clippy::module_inception, reason = "the folder is about it")]
mod mutex;

pub use builder::MutexBuilder;
pub use mutex::Mutex;
