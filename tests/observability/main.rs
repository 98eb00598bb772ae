//! Logs, spans and metrics: what an operator sees of a client.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue fails")]

mod log;
mod metrics;
mod page;
mod scenarios;
mod spans;
