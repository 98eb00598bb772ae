//! Leases on a name for a time, based on the clocks of the machines.

mod holder;
mod lease;

pub use holder::Holder;
pub use lease::{Obtained, TimedLease};
