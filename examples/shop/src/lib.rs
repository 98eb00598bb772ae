//! A shop in three copies, from start to stop: registration, readiness, drain, a job of the leader, followed
//! configuration, and a lock around writes to a database that refuses old fences.
//!
//! ```text
//! cargo run --bin shop
//! ```
//!
//! The files to copy from: [`service`] is the life of one copy, [`http`] answers requests, [`orders`] takes
//! the lock, [`stock`] is the database that checks fences, [`restock`] is the leader's job, and [`caller`]
//! balances over the copies. The rest is the stage: [`fleet`] are the processes, [`traffic`] the requests,
//! [`stage`] the mishaps, and [`demo`] tells of them.

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
