//! What tests can rely on: servers of both kinds, the proxy in front of them, and the same answers of both.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod backend;
mod operations;
mod ports;
mod proxy;
mod real_ensemble;
mod real_server;
mod recorded;
mod words;
