//! `docent revoke` and `docent break`: ask holders to leave, and delete nodes.

mod arguments;
mod delete;
mod found;
mod revoke;
mod shown;

pub(crate) use arguments::{BreakArguments, RevokeArguments};
pub(crate) use delete::run as delete;
pub(crate) use revoke::run as revoke;
