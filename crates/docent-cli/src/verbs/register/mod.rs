//! `docent register`: announces an instance of a service while a command runs.

mod arguments;
mod health;
mod instance;
mod leave;
mod run;

pub(crate) use arguments::Arguments;
pub(crate) use run::run;
