//! `docent elect`: stands for election, and runs a command while leading.

mod arguments;
mod failures;
mod listen;
mod run;
mod term;

pub(crate) use arguments::Arguments;
pub(crate) use run::run;
