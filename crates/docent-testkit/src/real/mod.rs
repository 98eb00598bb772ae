//! Real ZooKeeper processes.

mod error;
mod java;
mod options;
mod process;
mod server;

pub use error::{Missing, StartError};
pub use options::RealOptions;
pub use server::RealServer;
