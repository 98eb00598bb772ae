//! Candidates of elections, and those who look on.

mod candidate;
mod onlooker;
mod term;
mod workload;

pub(super) use workload::ElectionWorkload;
