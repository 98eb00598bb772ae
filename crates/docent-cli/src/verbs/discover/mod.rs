//! `docent discover`: services and their instances.

mod arguments;
mod follow;
mod run;
mod shown;

pub(crate) use arguments::Arguments;
pub(crate) use run::run;
