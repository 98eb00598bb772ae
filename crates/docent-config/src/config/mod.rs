//! Single configurations and folders of configurations, their settings, and publishing.

mod builder;
#[expect(clippy::module_inception, reason = "the folder is named after its main module")]
mod config;
mod config_tree;
mod last_published;
mod publish;
mod rollback;

pub use builder::ConfigBuilder;
pub use config::Config;
pub use config_tree::ConfigTree;
