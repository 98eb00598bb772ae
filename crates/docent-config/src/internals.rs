//! Layout of a configuration, for Docent's own crates. Nothing here is covered by any stability promise.

pub use crate::history::{FOLDER as HISTORY, name as revision_name, parse as revision};
pub use crate::rollout::{Applied, FOLDER as RUNNING};
