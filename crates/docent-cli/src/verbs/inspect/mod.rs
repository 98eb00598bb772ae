//! `docent inspect` and `docent ls`: what paths are, and how they stand.

mod arguments;
mod facts;
mod list;
mod path;
mod rows;
mod short;
mod summary;
mod time;

pub(crate) use arguments::{Arguments, ListArguments};
pub(crate) use list::run as list;
pub(crate) use path::run;
pub(crate) use rows::identity;
pub(crate) use time::age;
