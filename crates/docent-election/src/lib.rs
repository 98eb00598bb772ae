#![doc = include_str!("../README.md")]

mod election;
#[doc(hidden)]
pub mod internals;
mod leader;
mod leaders;
mod leadership;
mod takeover;
mod telemetry;
mod term;
mod waiting;

pub use election::{Election, ElectionBuilder, ElectionLayout, ElectionRun, WorkResult};
pub use leader::Leader;
pub use leaders::Leaders;
pub use leadership::Leadership;
