//! End of the program, and the exit code that reports it.

mod ending;
mod failure;
mod from;
mod report;

pub(crate) use ending::Ending;
pub(crate) use failure::{Failure, FailureKind};
pub(crate) use report::{HELP, Outcome, report, signal_of};
