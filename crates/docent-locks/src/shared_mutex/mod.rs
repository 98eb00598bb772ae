//! The mutex whose tickets are shared by the tasks of a process.

mod cohort;
mod local_line;
#[cfg(test)]
mod local_line_tests;
mod loss;
#[expect(clippy::module_inception, reason = "the folder is named after its main module")]
mod shared_mutex;
mod turn;
mod waiting;

pub(crate) use cohort::Cohort;
pub use shared_mutex::{SharedMutex, SharedMutexBuilder, SharedMutexGuard};
pub(crate) use turn::Turn;
pub use turn::{ParseTurnFenceError, TurnFence};
