//! Layouts of locks, for Docent's own crates only. Nothing in this module is covered by semantic versioning.

pub use crate::barrier::READY;
pub use crate::partition::identity as member_identity;
pub use crate::timed_lease::Holder as LeaseHolder;
