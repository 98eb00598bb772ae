//! `docent revoke` and `docent break`: holders that are asked to leave, and nodes that are deleted.

mod arguments;
mod delete;
mod found;
mod revoke;
mod shown;

pub(crate) use arguments::{BreakArguments, RevokeArguments};
pub(crate) use delete::run as delete;
pub(crate) use revoke::run as revoke;
