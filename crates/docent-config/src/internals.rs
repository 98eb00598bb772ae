//! Layout of a configuration, for Docent's own crates. No promise is made for anything in here.

pub use crate::history::{FOLDER as HISTORY, parse as revision};
