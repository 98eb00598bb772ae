//! Verbs of the command, one module for each: its arguments, and `run`.

pub(crate) mod completions;
mod dispatch;
pub(crate) mod man;

pub(crate) use dispatch::run;
