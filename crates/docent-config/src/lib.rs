#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod config;
mod counter;
mod error;
mod file;
mod history;
#[doc(hidden)]
pub mod internals;
mod layers;
mod rollout;
mod shared;
mod subscription;
mod telemetry;
mod tree;
mod typed;
mod updates;
mod value;

pub use config::{Config, ConfigBuilder, ConfigTree};
pub use counter::{Counted, Counter, CounterError, Integer};
#[cfg(feature = "properties")]
pub use docent_codec::Properties;
#[cfg(feature = "toml")]
pub use docent_codec::Toml;
#[cfg(feature = "yaml")]
pub use docent_codec::Yaml;
pub use docent_codec::{Codec, CodecError, Json, Raw};
pub use error::{PublishError, SubscribeError};
pub use history::HistoryEntry;
pub use layers::{
    KeyOrigin, LayeredChange, LayeredConfig, LayeredConfigBuilder, LayeredSnapshot, LayeredSubscription,
};
pub use rollout::Running;
pub use shared::{SharedCount, SharedValue};
pub use subscription::{Change, Subscription};
pub use tree::{TreeChange, TreeSnapshot, TreeSubscription};
pub use typed::{NodeError, NodeModel, PathTemplate, TypedNode, TypedNodeChanges};
pub use value::{Origin, Rejection, RejectionReason, Revision, Snapshot};
