//! A value: how it is written and read, its revision, and why it is refused.

mod format;
mod rejection;
mod revision;
mod snapshot;

pub(crate) use format::{Validate, ValueFormat};
pub use rejection::{Rejection, RejectionReason};
pub use revision::Revision;
pub use snapshot::{Origin, Snapshot};
