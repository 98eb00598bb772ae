//! How much code one operation executes, and how much code there is.

mod bench;
mod operation;
mod profile;
mod size;
mod worker;

pub(crate) use bench::{Options, run};
pub(crate) use worker::{WorkerOptions, work};
