//! Tests of the test servers: both backends, the proxy in front of them, and the equality of their answers.
#![allow(clippy::unwrap_used, reason = "a test that cannot continue fails")]

mod backend;
mod operations;
mod ports;
mod proxy;
mod real_ensemble;
mod real_server;
mod recorded;
mod words;
