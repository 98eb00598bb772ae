//! `docent doctor`: checks of servers and settings, each with a remedy.

mod access;
mod answer;
mod bounds;
mod clock;
mod diagnosis;
mod dialect;
mod ensemble;
mod finding;
mod grant;
mod identity;
mod lease;
mod password;
mod payloads;
mod run;
mod server;
mod words;

pub(super) use answer::Answer;
pub(crate) use run::{Arguments, run};
pub(super) use words::{exchange, exchange_any, talks_tls};
