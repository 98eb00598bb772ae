//! `docent sessions`: sessions with ephemeral nodes, and what ends with each.

mod arguments;
mod run;
mod table;

pub(crate) use arguments::Arguments;
pub(crate) use run::run;
