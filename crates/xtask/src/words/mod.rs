//! Wording: messages, the table of log events, and phrases that are hard to read.

mod events;
mod habits;
mod messages;
mod report;
mod rust;
mod sentences;

pub(crate) use events::{PAGE, page};
pub(crate) use messages::check;
pub(crate) use report::print;
