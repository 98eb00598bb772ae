//! `docent queue`: puts, takes and lists items of a queue.

mod arguments;
mod dead;
mod item;
mod lines;
mod peek;
mod put;
mod run;
mod take;

pub(crate) use arguments::Arguments;
pub(crate) use run::run;
