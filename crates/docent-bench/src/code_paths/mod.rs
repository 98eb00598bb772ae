//! The amount of code that one operation executes, and the size of the code.

mod bench;
mod operation;
mod profile;
mod size;
mod worker;

pub(crate) use bench::{Options, run};
pub(crate) use worker::{WorkerOptions, work};
