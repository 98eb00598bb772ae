use crate::session::connect_string::ServerAddress;
use std::fmt;
use std::net::SocketAddr;
use tokio::time::Instant;

/// Address to try in this round.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub(super) server: ServerAddress,
    pub(super) address: SocketAddr,
    /// True if the name does not resolve now, but resolved to this address earlier.
    pub(super) known_only: bool,
    /// Time at which a link to this address was abandoned with unanswered writes. Such an address is tried
    /// last, so that late writes stay rare (decision 11).
    pub(super) abandoned_at: Option<Instant>,
}

impl Candidate {
    pub(super) fn new(server: ServerAddress, address: SocketAddr) -> Self {
        Self { server, address, known_only: false, abandoned_at: None }
    }
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (server, address) = (self.server.to_string(), self.address.to_string());
        if server == address { f.write_str(&server) } else { write!(f, "{server} ({address})") }
    }
}
