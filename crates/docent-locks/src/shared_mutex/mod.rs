//! The mutex whose tickets are shared by the tasks of a process.

mod builder;
mod cohort;
mod guard;
mod local_line;
#[cfg(test)]
mod local_line_tests;
mod loss;
#[expect(clippy::module_inception, reason = "the folder is named after its main module")]
mod shared_mutex;
mod turn;
mod turn_fence;
mod waiting;

pub use builder::SharedMutexBuilder;
pub(crate) use cohort::Cohort;
pub use guard::SharedMutexGuard;
pub use shared_mutex::SharedMutex;
pub(crate) use turn::Turn;
pub use turn_fence::{ParseTurnFenceError, TurnFence};
