#![doc = include_str!("../README.md")]

mod consumer;
mod error;
#[doc(hidden)]
pub mod internals;
mod layout;
mod queue;
mod simple;
mod store;
mod telemetry;

#[cfg(feature = "properties")]
pub use docent_codec::Properties;
#[cfg(feature = "toml")]
pub use docent_codec::Toml;
#[cfg(feature = "yaml")]
pub use docent_codec::Yaml;
pub use docent_codec::{Codec, CodecError, Json, Raw};
pub use error::{AckError, PeekError, PutError};
pub use layout::{DeadReason, QueueLayout};
pub use queue::{
    Consume, DeadLetter, DeadLetters, Deliveries, Delivery, PutOptions, Queue, QueueBuilder, QueuedItem,
};
pub use simple::SimpleQueue;
