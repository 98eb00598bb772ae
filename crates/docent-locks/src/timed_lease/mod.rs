//! Leases on a name for a time, based on the clocks of the machines.

mod holder;
mod lease;
mod obtained;

pub use holder::Holder;
pub use lease::TimedLease;
pub use obtained::Obtained;
