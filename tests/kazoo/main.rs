//! Docent's recipes and kazoo's on the same nodes of the embedded server and of a real ZooKeeper.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue fails")]

mod barriers;
mod client;
mod config;
mod counter;
mod dubbo;
mod election;
mod inspect;
mod lock;
mod party;
mod rw_lock;
mod sasl;
mod semaphore;

use docent_battery::both_backends_with_packages as beside_kazoo;
