//! What the examples have in common.

pub(crate) mod ensemble;
mod logging;
mod own_path;

pub(crate) use ensemble::Ensemble;
pub(crate) use logging::log_to_stderr;
pub(crate) use own_path::{clean_up, own_path};
