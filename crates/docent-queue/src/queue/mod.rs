//! The queue, its builder, and its deliveries.

mod admin;
mod builder;
mod consume;
mod dead_letters;
mod deliveries;
mod delivery;
mod put;
#[expect(clippy::module_inception, reason = "the folder is named after its main module")]
mod queue;
mod take;

pub use admin::QueuedItem;
pub use builder::QueueBuilder;
pub use consume::Consume;
pub use dead_letters::{DeadLetter, DeadLetters};
pub use deliveries::Deliveries;
pub use delivery::Delivery;
pub use put::PutOptions;
pub use queue::Queue;
