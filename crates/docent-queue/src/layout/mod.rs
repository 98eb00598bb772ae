//! Paths, names and data of a queue's nodes.

mod frame;
mod name;
mod paths;
mod queue_layout;

pub(crate) use name::{in_order, is_in_danger_zone, number};
pub(crate) use paths::Paths;
pub use queue_layout::QueueLayout;
