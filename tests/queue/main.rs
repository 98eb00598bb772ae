//! Queues, on the embedded server and on a real ZooKeeper.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue fails")]

mod acks;
mod bad_input;
mod batteries;
mod bound;
mod breaks;
mod consume;
mod contender;
mod cost;
mod dead_letters;
mod delays;
mod deliveries;
mod folders;
mod frozen;
mod idle;
mod jobs;
mod late;
mod later;
mod layouts;
mod many;
mod options;
mod order;
mod ordered;
mod puts;
mod rivals;
mod simple;
mod soak;
mod stalled;
mod versions;
