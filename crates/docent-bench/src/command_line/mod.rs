//! The command `docent` from start to exit, beside other ways for a script to hold a lock.

mod bench;
mod sequential;
mod way;

pub(crate) use bench::{Options, run};
pub(crate) use sequential::{SequentialOptions, sequential_lock};
