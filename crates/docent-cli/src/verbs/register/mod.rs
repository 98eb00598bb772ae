//! `docent register`: an instance of a service, announced while a command lives.

mod arguments;
mod health;
mod instance;
mod leave;
mod run;

pub(crate) use arguments::Arguments;
pub(crate) use run::run;
