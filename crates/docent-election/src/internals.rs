//! Layout of an election, for Docent's own crates only. Nothing in this module is covered by semantic
//! versioning.

pub use crate::takeover::term;
