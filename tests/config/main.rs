//! Configuration, shared values and counters, on the embedded server and on a real ZooKeeper.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod bad_input;
mod batteries;
mod counter;
mod delivery;
mod fan_out;
mod file;
mod history;
mod hooks;
mod limits;
mod publish;
mod restored;
mod shared;
mod sharing;
mod support;
mod tree;
mod typed;

// Modules that are also run with persistent watches take clients from here.
use docent_tests::{builder, connect};

/// True where caches use persistent watches: one at the server for each, in both of its tables.
const PERSISTENT: bool = false;
