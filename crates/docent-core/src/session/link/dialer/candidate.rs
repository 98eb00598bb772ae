use crate::session::connect_string::ServerAddress;
use std::fmt;
use std::net::SocketAddr;
use tokio::time::Instant;

/// Address that is to be tried in this round.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub(super) server: ServerAddress,
    pub(super) address: SocketAddr,
    /// The name does not resolve now: it had this address before.
    pub(super) known_only: bool,
    /// When it was left with unanswered writes. It is tried only when nothing else is left to be tried.
    pub(super) left_at: Option<Instant>,
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (server, address) = (self.server.to_string(), self.address.to_string());
        if server == address { f.write_str(&server) } else { write!(f, "{server} ({address})") }
    }
}
