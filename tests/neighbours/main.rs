//! Other frameworks that keep their state in ZooKeeper, on the embedded server and on a real one: Apache's
//! Dubbo SDKs for Python and Node, and Patroni.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue fails")]

mod calls;
mod node;
mod patroni;
mod processes;
mod triple;
