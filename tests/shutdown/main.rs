//! Shutdown of a client, on the embedded server and on a real ZooKeeper.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue fails")]

mod calls;
mod claims;
mod drain;
mod ended;
mod margin;
mod order;
mod outage;
mod terminated;
