//! `docent inspect` and `docent ls`: what paths are, and how they stand.

mod access;
mod arguments;
mod facts;
mod list;
mod owner;
mod path;
mod rows;
mod short;
mod summary;
mod time;

pub(crate) use access::readable;
pub(crate) use arguments::{Arguments, ListArguments};
pub(crate) use list::run as list;
pub(crate) use owner::{introduced, introduced_claim};
pub(crate) use path::run;
