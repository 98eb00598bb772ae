//! Recognition of recipes by the names and the data of nodes that were read, without I/O.

mod barrier;
mod config;
mod contenders;
mod curator_queue;
mod election;
mod found;
mod items;
mod lease;
mod lock;
mod members;
mod partition;
mod queue;
#[expect(clippy::module_inception, reason = "the folder is named after its main module")]
mod recognise;
mod semaphore;
mod service;
mod value;

pub(crate) use recognise::recognise;
