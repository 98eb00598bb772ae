//! Candidates and observers of elections.

mod candidate;
mod observer;
mod term;
mod workload;

pub(super) use workload::ElectionWorkload;
