//! Paths, names and data of a queue's nodes.

mod letter;
mod name;
mod queue_layout;

pub use letter::{DeadReason, Head};
pub use name::{ItemName, Turns, number};
pub(crate) use name::{in_order, is_in_danger_zone, number_after};
pub(crate) use queue_layout::Paths;
pub use queue_layout::QueueLayout;
