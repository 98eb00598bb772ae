#![doc = include_str!("../README.md")]

mod builder;
mod election;
mod election_layout;
mod election_run;
mod leader;
mod leaders;
mod leadership;
mod takeover;
mod term;

pub use builder::ElectionBuilder;
pub use election::Election;
pub use election_layout::ElectionLayout;
pub use election_run::ElectionRun;
pub use leader::Leader;
pub use leaders::Leaders;
pub use leadership::Leadership;
