//! Paths, names and data of a queue's nodes.

mod frame;
mod letter;
mod name;
mod paths;
mod queue_layout;
mod turns;

pub use letter::{DeadReason, Head};
pub use name::{ItemName, number};
pub(crate) use name::{in_order, is_in_danger_zone, number_after};
pub(crate) use paths::Paths;
pub use queue_layout::QueueLayout;
pub use turns::Turns;
