//! A value: its encoding, its revision, and why it is rejected.

mod format;
mod rejection;
mod revision;
mod snapshot;

pub(crate) use format::{Validate, ValueFormat};
pub use rejection::{Rejection, RejectionReason};
pub use revision::Revision;
pub use snapshot::{Origin, Snapshot};
