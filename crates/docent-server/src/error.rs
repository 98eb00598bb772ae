use std::io;
use std::net::SocketAddr;

/// Reason why a server does not listen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The address is not a loopback address, and the builder was not told to allow that.
    #[error(
        "address {0} is not a loopback address: others could reach the server; allow_remote() permits it"
    )]
    NotLoopback(SocketAddr),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The server was stopped.
    #[error("the server was stopped")]
    Stopped,
}
