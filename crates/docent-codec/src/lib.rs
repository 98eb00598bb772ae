#![doc = include_str!("../README.md")]

mod codec;
mod error;
#[doc(hidden)]
pub mod internals;
mod json;
mod raw;
mod texts;

pub use codec::Codec;
pub use error::CodecError;
pub use json::Json;
pub use raw::Raw;
