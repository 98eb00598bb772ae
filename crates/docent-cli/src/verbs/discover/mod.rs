//! `docent discover`: services and their instances.

mod arguments;
mod checks;
mod endpoint;
mod file_sd;
mod follow;
mod list;
mod run;
mod shown;
mod template;

pub(crate) use arguments::Arguments;
pub(crate) use run::run;
