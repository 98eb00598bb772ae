//! Small runs, written by hand, to check the checker with. [`HistoryBuilder`] has the events that all recipes
//! share and those of attempts to hold something; the events of each other recipe are a trait, in a file of
//! their own.

mod attempts;
mod builder;
mod config;
mod discovery;
mod double_barrier;
mod election;
mod queue;

pub(crate) use builder::{HistoryBuilder, LOCK, client};
pub(crate) use config::{ConfigEvents, FOLLOWER};
pub(crate) use discovery::DiscoveryEvents;
pub(crate) use double_barrier::{BarrierEvents, Guest};
pub(crate) use election::{ElectionEvents, candidate};
pub(crate) use queue::{Given, QueueEvents, Stored};
