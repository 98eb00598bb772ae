//! A shop in three copies, from start to stop: registration, readiness, drain, a job for the leader, live
//! configuration, and a lock around writes to a database that refuses old fences.
//!
//! ```text
//! cargo run --bin shop
//! ```
//!
//! Copy from these files: [`service`] is the life of one copy, [`http`] answers requests, [`orders`] takes
//! the lock, [`stock`] is the database that checks fences, [`restock`] is the leader's job, and [`caller`]
//! balances over the copies. The other files run the show: [`fleet`] starts the processes, [`traffic`] sends
//! the requests, [`stage`] causes the failures, and [`demo`] reports them.

pub mod caller;
pub mod demo;
pub mod fleet;
pub mod http;
pub mod orders;
pub mod policy;
pub mod restock;
pub mod servers;
pub mod service;
pub mod settings;
pub mod stage;
pub mod stock;
pub mod telemetry;
pub mod traffic;
