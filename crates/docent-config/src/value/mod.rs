//! A value: its encoding, its revision, and why it is rejected.

mod checks;
mod format;
mod rejection;
mod revision;
mod snapshot;

pub(crate) use checks::{Checks, Validate};
pub(crate) use format::ValueFormat;
pub use rejection::{Rejection, RejectionReason};
pub use revision::Revision;
pub use snapshot::{Origin, Snapshot};
