//! Verbs of the command, one module each: its arguments, and `run`.

pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod contenders;
pub(crate) mod dev;
pub(crate) mod discover;
mod dispatch;
pub(crate) mod doctor;
pub(crate) mod elect;
mod hook;
pub(crate) mod inspect;
mod kind_at;
pub(crate) mod lock;
pub(crate) mod man;
pub(crate) mod queue;
pub(crate) mod register;

pub(crate) use dispatch::run;
