//! Locks, on the embedded server and on a real ZooKeeper.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue fails")]

mod any_guard;
mod bad_input;
mod barrier;
mod barrier_faults;
mod batteries;
mod bound;
mod cancel;
mod contender;
mod cost;
mod double_barrier;
mod double_barrier_faults;
mod frozen;
mod granted_less;
mod handoff;
mod held_since;
mod kinds;
mod lease;
mod loss;
mod multi_lock;
mod neighbours;
mod not_acquired;
mod order;
mod outage;
mod partition;
mod reentry;
mod refused;
mod requests;
mod restart;
mod rw_lock;
mod same_ids;
mod semaphore;
mod shared;
mod stall;
mod stopped_client;
mod timed_lease;

// Modules that also run on another kind of session take clients and the macro from here.
use docent_battery::both_backends;
use docent_tests::{builder, connect};
