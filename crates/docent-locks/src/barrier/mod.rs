//! The barriers: one that is set and removed explicitly, and one that lets members in and out together.

#[expect(clippy::module_inception, reason = "the folder is named after its main module")]
mod barrier;
mod double_barrier;
mod error;

pub use barrier::Barrier;
pub use double_barrier::{DoubleBarrier, Entered, READY};
pub use error::BarrierError;
