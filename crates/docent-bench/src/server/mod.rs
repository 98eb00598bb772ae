//! The embedded server side by side with a real ZooKeeper: rates, memory, and the end of many sessions at
//! once.

mod bench;
mod nodes;
mod process;
mod rates;
mod report;
mod serve;
mod sessions;

pub(crate) use bench::{Options, run};
pub(crate) use serve::serve;
