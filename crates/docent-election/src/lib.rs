#![doc = include_str!("../README.md")]

mod builder;
mod election;
mod layout;
mod leader;
mod leaders;
mod leadership;
mod run;
mod takeover;
mod term;

pub use builder::ElectionBuilder;
pub use election::Election;
pub use layout::Layout;
pub use leader::Leader;
pub use leaders::Leaders;
pub use leadership::Leadership;
pub use run::Run;
