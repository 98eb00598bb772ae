//! Real ZooKeeper processes.

mod ensemble;
mod error;
mod java;
mod peer_link;
mod process;
mod read_only;
mod server;

pub use ensemble::RealEnsemble;
pub use error::{Missing, StartError};
pub use java::Java;
pub use server::RealServer;
