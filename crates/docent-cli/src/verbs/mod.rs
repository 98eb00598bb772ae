//! Verbs of the command, one module for each: its arguments, and `run`.

pub(crate) mod completions;
pub(crate) mod dev;
mod dispatch;
pub(crate) mod doctor;
pub(crate) mod elect;
pub(crate) mod lock;
pub(crate) mod man;

pub(crate) use dispatch::run;
