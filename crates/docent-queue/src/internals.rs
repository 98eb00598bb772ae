//! Layout of a queue, for Docent's own crates. No promise is made for anything in here.

pub use crate::consumer::{IDLE, LETTER};
pub use crate::layout::{Head as LetterHead, ItemName, Turns, number};
pub use crate::simple::PREFIX as SIMPLE;
