//! What the examples have in common.

mod ensemble;
mod own_path;
mod logging;

pub(crate) use ensemble::{Ensemble, Servers};
pub(crate) use own_path::{clean_up, own_path};
pub(crate) use logging::log_to_stderr;
