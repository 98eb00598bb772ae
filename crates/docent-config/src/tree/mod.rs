//! A folder of configurations.

mod config_tree;
mod feed;
mod snapshot;
mod subscription;

pub use config_tree::ConfigTree;
pub use snapshot::TreeSnapshot;
pub use subscription::{TreeChange, TreeSubscription};
