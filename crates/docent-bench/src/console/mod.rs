//! `docent console` with many open pages: requests to ZooKeeper, latency of a change, memory and CPU.

mod bench;
mod page;

pub(crate) use bench::{Options, run};
