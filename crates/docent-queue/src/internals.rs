//! Layout of a queue, for Docent's own crates only. Nothing in this module is covered by semantic versioning.

pub use crate::consumer::{IDLE, LETTER};
pub use crate::layout::{Head as LetterHead, ItemName, Turns, number};
pub use crate::simple::PREFIX as SIMPLE;
