//! A value: its encoding, its revision, and why it is rejected.

mod format;
mod rejection;
mod snapshot;

pub(crate) use format::{Checks, Validate, ValueFormat};
pub use rejection::{Rejection, RejectionReason};
pub use snapshot::{Origin, Revision, Snapshot};
