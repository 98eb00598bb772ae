#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod codec;
mod error;
#[doc(hidden)]
pub mod internals;
mod json;
#[cfg(feature = "properties")]
mod properties;
mod raw;
#[cfg(all(test, any(feature = "properties", feature = "toml", feature = "yaml")))]
mod shared_tests;
#[cfg(any(feature = "toml", feature = "yaml"))]
mod text;
mod texts;
#[cfg(feature = "toml")]
mod toml;
#[cfg(feature = "yaml")]
mod yaml;

pub use codec::Codec;
pub use error::CodecError;
pub use json::Json;
#[cfg(feature = "properties")]
pub use properties::Properties;
pub use raw::Raw;
#[cfg(feature = "toml")]
pub use toml::Toml;
#[cfg(feature = "yaml")]
pub use yaml::Yaml;
