//! Layouts of locks, for Docent's own crates. No promise is made for anything in here.

pub use crate::barrier::READY;
pub use crate::partition::identity as member_identity;
pub use crate::timed_lease::Holder as LeaseHolder;
