//! `docent inspect` and `docent ls`: show which recipe a path is, and its state.

mod access;
mod arguments;
mod cut;
mod facts;
mod list;
mod owner;
mod path;
mod rows;
mod selection;
mod short;
mod summary;
mod time;

pub(crate) use access::readable;
pub(crate) use arguments::{Arguments, ListArguments, kind_names};
pub(crate) use list::run as list;
pub(crate) use owner::{describe_claim, describe_contender};
pub(crate) use path::{report_gaps, run};
pub(crate) use short::{short, shortened};
pub(crate) use time::age;
