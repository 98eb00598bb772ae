//! The queue of ZooKeeper's documentation, and the items of it that this process knows.

mod known;
mod simple_queue;
mod take;

use known::KnownItems;
pub use simple_queue::{PREFIX, SimpleQueue};
