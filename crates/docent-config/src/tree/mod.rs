//! Subscriptions to a folder of configurations.

mod shared_feed;
mod snapshot;
mod subscription;

pub(crate) use shared_feed::SharedTreeFeed;
pub use snapshot::TreeSnapshot;
pub use subscription::{TreeChange, TreeSubscription};
