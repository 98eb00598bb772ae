//! Output: tables, JSON and YAML on standard output, progress and errors on standard error.

mod deleted;
mod escape;
mod file;
#[allow(clippy::module_inception, reason = "the module is named after its type")]
mod output;
mod table;
mod utc;
mod yaml;

pub(crate) use deleted::Deleted;
pub(crate) use escape::{escaped, json_escaped};
pub(crate) use file::replace as replace_file;
pub(crate) use output::{Output, color_of_help};
pub(crate) use table::Table;
pub(crate) use utc::utc;
