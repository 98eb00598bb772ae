//! Tenants: clients with different credentials on one tree, on the embedded server and on a real ZooKeeper.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue fails")]

mod matrix;
mod placement;
mod recipes;
mod scene;
mod secured;
