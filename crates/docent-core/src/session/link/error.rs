use crate::session::sasl::SaslError;
use docent_proto::{Code, DecodeError};
use std::io;
use std::sync::Arc;

/// Reason why a link could not be established or was lost.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum LinkError {
    // Not errors, but the steps that the dialer waits for.
    #[error("resolving {host:?}")]
    Resolving { host: String },
    #[error("connecting to {server}")]
    Connecting { server: String },
    #[error("waiting for a Kerberos ticket for {server}")]
    Ticket { server: String },
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
    #[error("the server closed the connection before it attached the session")]
    Refused,
    #[error(
        "the ensemble was restored from an older snapshot: its newest transaction is {newest:#x}, the client saw {seen:#x}"
    )]
    RolledBack { newest: i64, seen: i64 },
    #[error("the connection failed")]
    Io(#[source] Arc<io::Error>),
    #[error("the server was removed from the list of servers")]
    Removed,
    #[error("the server has lost its quorum; looking for one that has not")]
    ReadOnly,
    #[error("the server gave no reply in time")]
    Silent,
    #[error("the client was paused for too long; the servers may be about to expire its session")]
    Paused,
    #[error("the server did not answer the handshake in time")]
    Handshake,
    #[error("the server refused the credentials: {0}")]
    Credentials(Code),
    #[error(transparent)]
    Sasl(#[from] SaslError),
    #[error("the server closed the connection during the SASL authentication")]
    SaslHangUp,
    #[error("the server violated the protocol: {0}")]
    Protocol(String),
    #[error("cannot decode a message from the server")]
    Decode(#[from] DecodeError),
    #[cfg(feature = "zookeeper-client")]
    #[error("zookeeper-client: {0}")]
    ZookeeperClient(String),
}

impl LinkError {
    /// Returns true if the server ended the connection without giving a reason. This includes a TLS alert.
    pub(in crate::session) fn is_hang_up(&self) -> bool {
        match self {
            Self::ClosedByServer => true,
            Self::Io(error) => error.kind() != io::ErrorKind::InvalidData,
            _ => false,
        }
    }

    /// Returns true for a step that the dialer waits for.
    pub(crate) fn is_step(&self) -> bool {
        let connected = matches!(self, Self::Ticket { .. } | Self::Greeting { .. });
        connected || matches!(self, Self::Resolving { .. } | Self::Connecting { .. })
    }

    /// Returns why there is no link, for a text that names the server.
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::Resolving { .. } => "still resolving its name".to_owned(),
            Self::Connecting { .. } => "still connecting".to_owned(),
            Self::Ticket { .. } => {
                "connected, but no Kerberos ticket yet; check that the KDC in krb5.conf is reachable"
                    .to_owned()
            }
            Self::Greeting { .. } => "connected, but no answer to the handshake yet".to_owned(),
            Self::Resolve { source, .. } => format!("name not resolved: {source}"),
            Self::Dial { source, .. } => match source.kind() {
                // Without the number of the operating system's error.
                kind @ io::ErrorKind::ConnectionRefused => kind.to_string(),
                _ => source.to_string(),
            },
            Self::DialTimeout { seconds, .. } => format!("no connection within {seconds:.3} s"),
            other => other.chain(),
        }
    }

    /// Returns the text of the error with its causes.
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
