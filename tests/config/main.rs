//! Configuration, shared values and counters, on the embedded server and on a real ZooKeeper.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue fails")]

mod bad_input;
mod batteries;
mod codecs;
mod counter;
mod delivery;
mod fan_out;
mod file;
mod history;
mod hooks;
mod layers;
mod limits;
mod publish;
mod restored;
mod rollout;
mod shared;
mod sharing;
mod support;
mod tree;
mod typed;

// Modules that are also run with persistent watches import these functions from here.
use docent_tests::{builder, connect};

/// True if caches use persistent watches. Each then has one watch at the server, which counts in both of its
/// tables.
const PERSISTENT: bool = false;
