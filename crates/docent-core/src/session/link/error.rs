use docent_proto::DecodeError;
use std::io;
use std::sync::Arc;

/// Reason why a link could not be made or was lost.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum LinkError {
    // Not errors yet, but the steps that the dialer waits for.
    #[error("resolving {host:?}")]
    Resolving { host: String },
    #[error("connecting to {server}")]
    Connecting { server: String },
    #[error("waiting for {server} to answer the handshake")]
    Greeting { server: String },
    #[error("could not resolve {host:?}")]
    Resolve { host: String, source: Arc<io::Error> },
    #[error("could not connect to {server}")]
    Dial { server: String, source: Arc<io::Error> },
    #[error("no connection to {server} within {seconds:.3} s")]
    DialTimeout { server: String, seconds: f64 },
    #[error("the server closed the connection")]
    ClosedByServer,
    #[error("the server closed the connection without a word: it may be behind what this client has seen")]
    Refused,
    #[error(
        "the servers were restored from an older copy: the newest transaction is {newest:#x}, seen was {seen:#x}"
    )]
    RolledBack { newest: i64, seen: i64 },
    #[error("the connection failed")]
    Io(#[source] Arc<io::Error>),
    #[error("the server is not in the list any more")]
    Removed,
    #[error("the server gave no reply in time")]
    Silent,
    #[error("the client stood still for so long that the servers may be about to end its session")]
    Paused,
    #[error("the server did not answer the handshake in time")]
    Handshake,
    #[error("the server broke the protocol: {0}")]
    Protocol(String),
    #[error("the server sent what cannot be read")]
    Decode(#[from] DecodeError),
    #[cfg(feature = "zookeeper-client")]
    #[error("zookeeper-client: {0}")]
    ZookeeperClient(String),
}

impl LinkError {
    /// The server ended the connection and gave no reason. An alert of TLS is one.
    pub(in crate::session) fn is_hang_up(&self) -> bool {
        match self {
            Self::ClosedByServer => true,
            Self::Io(error) => error.kind() != io::ErrorKind::InvalidData,
            _ => false,
        }
    }

    /// Text of the error with its causes.
    pub(crate) fn chain(&self) -> String {
        let causes = std::iter::successors(std::error::Error::source(self), |error| error.source());
        causes.fold(self.to_string(), |text, cause| format!("{text}: {cause}"))
    }
}

impl From<io::Error> for LinkError {
    fn from(error: io::Error) -> Self {
        Self::Io(Arc::new(error))
    }
}
