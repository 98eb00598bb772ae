//! `docent console` with many open pages: requests to ZooKeeper, latency of a change to its event and to its
//! pixel in a browser, memory and CPU.

mod bench;
mod browser;
mod fill;
mod page;

pub(crate) use bench::{Options, run};
