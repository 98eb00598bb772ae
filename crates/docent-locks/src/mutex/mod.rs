//! The mutex.

mod builder;
mod cohort;
mod fence_kind;
mod guard;
mod local_line;
#[cfg(test)]
mod local_line_tests;
#[expect(clippy::module_inception, reason = "the folder is about it")]
mod mutex;

pub use builder::MutexBuilder;
pub(crate) use cohort::Cohort;
pub use fence_kind::FenceKind;
pub(crate) use fence_kind::sealed::Sealed as Fenced;
pub use guard::MutexGuard;
pub use mutex::Mutex;
