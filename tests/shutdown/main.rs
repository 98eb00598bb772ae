//! The orderly end of a client, on the embedded server and on a real ZooKeeper.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod asked;
mod claims;
mod drain;
mod ended;
mod margin;
mod order;
mod outage;
mod terminated;
