#![doc = include_str!("../README.md")]

mod codec;
mod error;
mod json;
mod raw;

pub use codec::Codec;
pub use error::CodecError;
pub use json::Json;
pub use raw::Raw;
