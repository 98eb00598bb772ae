//! Realms, servers and clients for the tests of Kerberos.

#![allow(clippy::unwrap_used, reason = "only tests use these, and fail if a program cannot be run")]

mod program;
mod realm;
mod site;

pub use program::Program;
pub use realm::{PATIENCE, Realm};
pub use site::{NO_TICKET, Site, assert_contains};
