//! `docent lock`: holds a lock while a command runs, or until a signal.

mod any_guard;
mod arguments;
mod kind;
mod line;
mod progress;
mod run;

pub(crate) use arguments::Arguments;
pub(crate) use line::{HeldLine, revoked_message};
pub(crate) use run::run;
