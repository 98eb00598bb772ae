//! The queue, its settings, and the deliveries that it hands out.

mod builder;
mod deliveries;
#[expect(clippy::module_inception, reason = "the folder is about it")]
mod queue;
mod take;

pub use builder::QueueBuilder;
pub use deliveries::Deliveries;
pub use queue::Queue;
