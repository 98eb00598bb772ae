//! `docent doctor`: checks of servers and settings, each with a remedy.

mod access;
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

pub(crate) use run::{Arguments, run};
