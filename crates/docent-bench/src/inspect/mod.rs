//! `docent ls --watch` over many locks: requests while idle, latency and CPU of a change, and memory.

mod bench;

pub(crate) use bench::{Options, requests, run};
