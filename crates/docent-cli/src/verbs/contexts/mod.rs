//! `docent contexts`: the contexts of the file, and which one is current.

mod arguments;
mod list;
mod run;
mod use_context;

pub(crate) use arguments::Arguments;
pub(crate) use run::run;
