//! Small runs, written by hand, that test the checker. [`HistoryBuilder`] has the events that all recipes
//! share, and those of attempts to hold something. The events of each other recipe are a trait in a separate
//! file.

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
