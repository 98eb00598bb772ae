//! Layout of an election, for Docent's own crates. No promise is made for anything in here.

pub use crate::takeover::term;
