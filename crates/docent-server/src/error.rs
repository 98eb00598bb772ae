use crate::KeepError;
use std::io;
use std::net::SocketAddr;

/// Error of starting, stopping or restarting a server's listener.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The address is not a loopback address, and the builder does not allow remote clients.
    #[error(
        "start: {0} is not a loopback address, so other machines could reach the server; allow_remote() permits this"
    )]
    NotLoopback(SocketAddr),
    /// The server cannot listen on the address.
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
    /// The server has stopped.
    #[error("start: the server has stopped")]
    Stopped,
}

impl StartError {
    /// Returns whether a retry may succeed: an address may become free, and so may disk space.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Bind { .. } => true,
            Self::Keep(error) => error.is_retryable(),
            Self::NotLoopback(_) | Self::Stopped => false,
        }
    }

    /// Returns `false`: a server that does not listen has applied nothing.
    pub fn may_have_applied(&self) -> bool {
        false
    }

    /// Returns `None`: the error does not concern a node.
    pub fn path(&self) -> Option<&str> {
        None
    }
}

#[cfg(feature = "client-error")]
impl From<StartError> for docent_core::Error {
    fn from(error: StartError) -> Self {
        use docent_core::ErrorKind;
        let kind = match &error {
            StartError::NotLoopback(_) => ErrorKind::InvalidInput,
            StartError::Bind { .. } => ErrorKind::Unavailable,
            StartError::Keep(error) => error.kind(),
            StartError::Stopped => ErrorKind::Closed,
        };
        Self::of_recipe(kind, "start", error)
    }
}
