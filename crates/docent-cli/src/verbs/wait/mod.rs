//! `docent wait`: wait until a recipe has a state.

mod arguments;
mod condition;
mod run;

pub(crate) use arguments::Arguments;
pub(crate) use run::run;
