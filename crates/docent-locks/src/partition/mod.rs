//! A set of items, distributed over the members of a group.

mod builder;
mod layout;
mod partitioner;
mod share;

pub use builder::PartitionerBuilder;
pub use layout::identity;
pub use partitioner::Partitioner;
pub use share::{Share, ShareEnd};
