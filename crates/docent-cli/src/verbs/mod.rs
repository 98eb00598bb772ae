//! Verbs of the command, one module each: its arguments, and `run`.

pub(crate) mod complete;
pub(crate) mod completions;
pub(crate) mod config;
mod confirm;
pub(crate) mod console;
pub(crate) mod contenders;
pub(crate) mod contexts;
pub(crate) mod dev;
pub(crate) mod discover;
mod dispatch;
pub(crate) mod doctor;
pub(crate) mod elect;
pub(crate) mod ensemble;
mod hook;
pub(crate) mod inspect;
mod kind_at;
pub(crate) mod lock;
pub(crate) mod man;
pub(crate) mod queue;
pub(crate) mod register;
pub(crate) mod sessions;
pub(crate) mod wait;

pub(crate) use dispatch::run;
