//! `docent console`: the live page.

mod arguments;
mod certificate;
mod run;
mod serve;
mod stalled;

pub(crate) use arguments::Arguments;
pub(crate) use run::run;
