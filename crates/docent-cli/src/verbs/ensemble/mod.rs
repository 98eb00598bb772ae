//! `docent ensemble`: the vital figures of all servers.

mod arguments;
mod run;

pub(crate) use arguments::Arguments;
pub(crate) use run::run;
