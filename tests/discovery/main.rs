//! Discovery, naming and membership, on the embedded server and on a real ZooKeeper.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue fails")]

mod bad_input;
mod balance;
#[cfg(all(feature = "tonic", feature = "tower"))]
mod balanced;
mod batteries;
mod cost;
mod hooks;
mod large;
mod layout;
mod membership;
mod names;
mod neighbours;
mod opening;
mod parents;
mod persistent;
mod properties;
mod registration;
mod rules;
mod scene;
mod stalled;
mod superseded;
#[cfg(feature = "tonic")]
mod tonic;
#[cfg(feature = "tower")]
mod tower;
mod unreadable;
mod view;

// Modules that are also run with persistent watches import these functions from here.
use docent_tests::{builder, connect};
