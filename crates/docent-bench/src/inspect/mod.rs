//! `docent ls --watch` over many locks: requests while idle, latency and CPU of a change, and memory.

mod bench;
mod lister;

pub(crate) use bench::{Options, run};
