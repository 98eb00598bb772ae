//! The client, on the embedded server and on a real ZooKeeper.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod auth;
mod bad_input;
mod close;
mod fake;
mod hostile_server;
mod kept;
mod links;
mod many_watches;
mod metrics;
mod operations;
mod outcomes;
mod rollback;
mod secrets;
mod session;
mod tls;
mod unreachable;
mod watches;

// Modules that are also run on another kind of session take clients from here.
use docent_tests::{builder, connect};
