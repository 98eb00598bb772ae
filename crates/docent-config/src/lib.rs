#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod builder;
mod config;
mod counter;
mod error;
mod feed;
mod file;
mod history;
mod ledger;
mod publish;
mod rejection;
mod revision;
mod seeded;
mod settings;
mod shared_count;
mod shared_value;
mod snapshot;
mod subscription;
mod telemetry;
mod tree;
mod waiting;

pub use builder::ConfigBuilder;
pub use config::Config;
pub use counter::{Counted, Counter, CounterError, Integer};
pub use docent_codec::{Codec, CodecError, Json, Raw};
pub use error::{PublishError, SubscribeError};
pub use history::HistoryEntry;
pub use rejection::{Rejection, RejectionReason};
pub use revision::Revision;
pub use shared_count::SharedCount;
pub use shared_value::SharedValue;
pub use snapshot::{Origin, Snapshot};
pub use subscription::{Change, Subscription};
pub use tree::{ConfigTree, TreeChange, TreeSnapshot, TreeSubscription};
