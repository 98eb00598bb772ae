//! Output: tables and JSON on standard output, progress and errors on standard error.

mod deleted;
mod escape;
#[allow(clippy::module_inception, reason = "the module is named after its type")]
mod output;
mod table;
mod utc;

pub(crate) use deleted::Deleted;
pub(crate) use escape::{escaped, json_escaped};
pub(crate) use output::Output;
pub(crate) use table::Table;
pub(crate) use utc::utc;
