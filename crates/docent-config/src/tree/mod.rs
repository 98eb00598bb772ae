//! Subscriptions to a folder of configurations.

mod shared_feed;
mod subscription;

pub(crate) use shared_feed::SharedTreeFeed;
pub use subscription::{TreeChange, TreeSnapshot, TreeSubscription};
