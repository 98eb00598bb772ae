//! Single configurations and folders of configurations, their settings, and publishing.

#[expect(clippy::module_inception, reason = "the folder is named after its main module")]
mod config;
mod config_tree;
mod publish;

pub use config::{Config, ConfigBuilder};
pub use config_tree::ConfigTree;
