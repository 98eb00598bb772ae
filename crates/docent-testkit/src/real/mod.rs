//! Real ZooKeeper processes.

mod error;
mod java;
mod process;
mod server;

pub use error::{Missing, StartError};
pub use server::RealServer;
