//! The servers themselves, queried with four-letter words.

mod answer;
mod vitals;
mod words;

pub use answer::{Answer, Description};
pub use vitals::{ServerState, Vitals};
pub use words::{Missed, exchange, exchange_any, talks_tls};
