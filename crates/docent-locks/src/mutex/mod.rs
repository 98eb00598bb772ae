//! The mutex.

#[expect(clippy::module_inception, reason = "the folder is named after its main module")]
mod mutex;

pub use mutex::{Mutex, MutexBuilder, MutexGuard};
