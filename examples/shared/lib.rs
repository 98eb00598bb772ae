//! Helpers that the examples share.

mod ensemble;
mod exit;
mod logging;
mod own_path;
mod process;

pub use ensemble::{Ensemble, Servers};
pub use exit::exit_code;
pub use logging::log_to_stderr;
pub use own_path::{clean_up, own_path};
pub use process::{Process, until_input_ends};
