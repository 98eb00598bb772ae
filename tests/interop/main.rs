//! Docent's recipes and Curator's on the same nodes of a real ZooKeeper.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue fails")]

mod barriers;
mod curator;
mod discovery;
mod election;
mod inspect;
mod mutex;
mod neighbours;
mod nodes;
mod queue;
mod rw_lock;
mod semaphore;
mod shared;
