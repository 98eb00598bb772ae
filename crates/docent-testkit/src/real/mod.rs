//! Real ZooKeeper processes.

mod cable;
mod ensemble;
mod error;
mod java;
mod process;
mod server;

pub use ensemble::RealEnsemble;
pub use error::{Missing, StartError};
pub use server::RealServer;
