//! `docent config`: reads, publishes and follows configuration values.

mod arguments;
mod changes;
mod delete;
mod edit;
mod entry;
mod environment;
mod failure;
mod get;
mod history;
mod import;
mod list;
mod reserved;
mod run;
mod set;
mod shown;
mod values;
mod watch;

pub(crate) use arguments::Arguments;
pub(crate) use run::run;
