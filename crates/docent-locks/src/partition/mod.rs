//! A set of items, spread over the members of a group.

mod layout;
mod partitioner;
mod share;

pub use partitioner::{Partitioner, PartitionerBuilder};
pub use share::{Share, ShareEnd};
