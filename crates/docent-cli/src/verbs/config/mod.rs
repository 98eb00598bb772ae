//! `docent config`: reads, publishes and follows configuration values.

mod arguments;
mod edit;
mod environment;
mod failure;
mod get;
mod history;
mod reserved;
mod run;
mod set;
mod shown;
mod watch;

pub(crate) use arguments::Arguments;
pub(crate) use run::run;
