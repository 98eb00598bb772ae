//! The queue of ZooKeeper's documentation, and the items of it that this process knows.

mod known;
mod simple_queue;

pub use simple_queue::{PREFIX, SimpleQueue};
