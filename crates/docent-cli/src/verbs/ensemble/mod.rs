//! `docent ensemble`: the vital figures of all servers.

mod arguments;
mod run;
mod vitals;

pub(crate) use arguments::Arguments;
pub(crate) use run::run;
