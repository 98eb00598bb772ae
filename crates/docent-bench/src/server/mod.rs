//! The embedded server compared with a real ZooKeeper: rates, memory, and the simultaneous expiry of many
//! sessions.

mod bench;
mod nodes;
mod process;
mod rates;
mod report;
mod serve;
mod sessions;

pub(crate) use bench::{Options, run};
pub(crate) use process::{Kind, Process, megabytes};
pub(crate) use serve::serve;
