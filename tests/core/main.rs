//! The client, on the embedded server and on a real ZooKeeper.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue fails")]

mod abandoned_sessions;
mod arming;
mod auth;
mod bad_input;
mod children_cache;
mod children_cache_faults;
mod children_cache_large;
mod clock;
mod close;
mod delete_all;
mod dropped;
mod ensemble_tracker;
mod errors;
mod growth;
mod heartbeat;
mod hooks;
mod hostile_server;
mod kept;
mod kept_modes;
mod kept_stalled;
mod kept_writes;
mod links;
mod logged_once;
mod logged_paths;
mod many_watches;
mod markers;
mod node_cache;
mod operations;
mod options;
mod outcomes;
mod oversize;
mod own_hold;
mod printed;
mod read_only;
mod reminders;
mod renewed;
mod retries;
mod rollback;
mod runtime_ended;
mod sasl;
mod secrets;
mod session;
mod stopped_work;
mod tls;
mod tree_cache;
mod unreachable;
mod watches;

// Modules that also run on another kind of session take clients and the macro from here.
use docent_battery::both_backends;
use docent_tests::{builder, connect};

/// True if caches use persistent watches. The server then has one for each cache, in both of its tables.
const PERSISTENT: bool = false;
