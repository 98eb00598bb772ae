//! Texts under keys, for Docent's own crates. Nothing here is covered by any stability promise.

pub use crate::texts::{TextError, Texts, is_same_key};
