//! Candidates of elections, and onlookers.

mod candidate;
mod onlooker;
mod term;
mod workload;

pub(super) use workload::ElectionWorkload;
