use crate::KeepError;
use std::io;
use std::net::SocketAddr;

/// Reason why a server does not listen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The address is not a loopback address, and the builder was not told to allow that.
    #[error(
        "start: address {0} is not a loopback address: others could reach the server; allow_remote() permits it"
    )]
    NotLoopback(SocketAddr),
    /// The address cannot be listened on.
    #[error("start: cannot listen on {address}: {source}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The file of [`Builder::keep`](crate::Builder::keep) cannot be used.
    #[error("start: {0}")]
    Keep(#[from] KeepError),
    /// The server was stopped.
    #[error("start: the server was stopped")]
    Stopped,
}

impl StartError {
    /// True when the same call may succeed later: an address may come free, and so may room for a file.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Bind { .. } => true,
            Self::Keep(error) => error.is_retryable(),
            Self::NotLoopback(_) | Self::Stopped => false,
        }
    }

    /// Always false: a server that does not listen has done nothing.
    pub fn may_have_applied(&self) -> bool {
        false
    }

    /// `None`: it is about no node.
    pub fn path(&self) -> Option<&str> {
        None
    }
}
