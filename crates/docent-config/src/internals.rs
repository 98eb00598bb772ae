//! Layout of a configuration, for Docent's own crates. Nothing here is covered by any stability promise.

pub use crate::history::{FOLDER as HISTORY, parse as revision};
