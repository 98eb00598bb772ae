//! A set of items, distributed over the members of a group.

mod layout;
mod partitioner;
mod share;

pub use layout::identity;
pub use partitioner::{Partitioner, PartitionerBuilder};
pub use share::{Share, ShareEnd};
