//! Runs of scripts on servers.

mod control;
mod link;
mod record;
mod runner;

pub use record::Record;
pub use runner::run;
