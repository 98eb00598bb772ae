//! Configurations, one by one and in folders, their settings, and publishing.

mod builder;
#[expect(clippy::module_inception, reason = "the folder is about it")]
mod config;
mod config_tree;
mod last_published;
mod publish;
mod rollback;

pub use builder::ConfigBuilder;
pub use config::Config;
pub use config_tree::ConfigTree;
