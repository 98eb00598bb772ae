//! The file that stores a server's state between a clean stop and the next start.

mod error;
mod file;
mod format;
mod lock;

pub use error::{KeepError, KeepFault};

pub(crate) use file::{Keep, KeepFile};
