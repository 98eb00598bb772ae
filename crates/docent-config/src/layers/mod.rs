//! Folders of texts in layers, as one typed value.

mod config;
mod feed;
mod merged;
mod subscription;

pub use config::{LayeredConfig, LayeredConfigBuilder};
pub use subscription::{KeyOrigin, LayeredChange, LayeredSnapshot, LayeredSubscription};
