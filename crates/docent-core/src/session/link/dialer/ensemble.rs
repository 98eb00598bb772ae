use super::link_status::LinkStatus;
use crate::session::connect_string::ServerAddress;
use crate::session::link::transport::Transport;
use crate::telemetry::Instruments;
use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

/// What a client knows about its servers, across all of its sessions.
#[derive(Debug, Clone)]
pub(crate) struct Ensemble {
    pub(crate) transport: Arc<dyn Transport>,
    /// Current list of servers to connect to.
    pub(crate) servers: Arc<watch::Sender<Vec<ServerAddress>>>,
    /// Addresses to which each name resolved last. Servers usually survive an outage of the name service.
    pub(super) known: Arc<Mutex<HashMap<ServerAddress, Vec<SocketAddr>>>>,
    /// Servers whose links were abandoned with unanswered writes, each with the time.
    ///
    /// A server that is cut off from its leader keeps such writes and forwards them when it can. The leader
    /// refuses these writes once the session has moved to another server, unless the client has meanwhile
    /// attached the session to the first server again (decision 11).
    pub(super) abandoned: Arc<Mutex<HashMap<SocketAddr, Instant>>>,
    pub(crate) link_status: LinkStatus,
}

impl Ensemble {
    pub(crate) fn new(
        transport: Arc<dyn Transport>,
        servers: Vec<ServerAddress>,
        instruments: Arc<Instruments>,
    ) -> Self {
        Self {
            transport,
            servers: Arc::new(watch::Sender::new(servers)),
            known: Arc::default(),
            abandoned: Arc::default(),
            link_status: LinkStatus::new(instruments),
        }
    }

    /// Returns true if one of the server's addresses accepts a connection within `limit`.
    pub(crate) async fn accepts(&self, server: &ServerAddress, limit: Duration) -> bool {
        let connecting = async {
            for address in self.transport.resolve(server).await.unwrap_or_default() {
                if self.transport.dial(server, address).await.is_ok() {
                    return true;
                }
            }
            false
        };
        timeout(limit, connecting).await.unwrap_or(false)
    }

    /// Returns the same servers for auxiliary links. The fate of such a link says nothing about the client's
    /// own link.
    pub(in crate::session) fn for_side_link(&self) -> Self {
        Self { link_status: self.link_status.unlogged(), ..self.clone() }
    }
}

/// Address of a server, as one round of attempts uses it.
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

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (server, address) = (self.server.to_string(), self.address.to_string());
        if server == address { f.write_str(&server) } else { write!(f, "{server} ({address})") }
    }
}
