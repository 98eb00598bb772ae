//! `docent queue`: items of a queue, put, taken and looked at.

mod arguments;
mod dead;
mod item;
mod lines;
mod look;
mod put;
mod run;
mod take;

pub(crate) use arguments::Arguments;
pub(crate) use run::run;
