//! Folders of texts in layers, as one typed value.

mod builder;
mod config;
mod feed;
mod merged;
mod snapshot;
mod subscription;

pub use builder::LayeredConfigBuilder;
pub use config::LayeredConfig;
pub use snapshot::{KeyOrigin, LayeredSnapshot};
pub use subscription::{LayeredChange, LayeredSubscription};
