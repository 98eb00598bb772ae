//! The time of the `docent` command from start to exit, compared with other ways for a script to hold a lock.

mod bench;
mod sequential;
mod way;

pub(crate) use bench::{Options, run};
pub(crate) use sequential::{SequentialOptions, sequential_lock};
