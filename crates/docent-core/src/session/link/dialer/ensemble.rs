use super::last_error::LastError;
use super::link_status::LinkStatus;
use crate::session::connect_string::ServerAddress;
use crate::session::link::rollback::Refusals;
use crate::session::link::transport::Transport;
use crate::telemetry::Instruments;
use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

/// What a client knows about its servers, across all of its sessions.
#[derive(Debug, Clone)]
pub(crate) struct Ensemble {
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) servers: Servers,
    pub(super) known: KnownAddresses,
    pub(super) abandoned: AbandonedServers,
    pub(crate) last_error: LastError,
    pub(super) refusals: Refusals,
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
            servers: Servers::new(servers),
            known: KnownAddresses::default(),
            abandoned: AbandonedServers::default(),
            last_error: LastError::default(),
            refusals: Refusals::default(),
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
        let link_status = self.link_status.unlogged();
        Self { last_error: LastError::default(), refusals: Refusals::default(), link_status, ..self.clone() }
    }
}

/// Current list of servers to connect to.
#[derive(Debug, Clone)]
pub(crate) struct Servers(Arc<watch::Sender<Vec<ServerAddress>>>);

impl Servers {
    pub(crate) fn new(servers: Vec<ServerAddress>) -> Self {
        Self(Arc::new(watch::Sender::new(servers)))
    }

    pub(crate) fn set(&self, servers: Vec<ServerAddress>) {
        self.0.send_replace(servers);
    }

    pub(crate) fn get(&self) -> Vec<ServerAddress> {
        self.0.borrow().clone()
    }

    /// Resolves when `server` is not in the list.
    pub(in crate::session) async fn removed(&self, server: &ServerAddress) {
        let mut servers = self.0.subscribe();
        let _ = servers.wait_for(|servers| !servers.contains(server)).await;
    }
}

/// Addresses to which each name resolved last. Servers usually survive an outage of the name service.
#[derive(Debug, Clone, Default)]
pub(super) struct KnownAddresses(Arc<Mutex<HashMap<ServerAddress, Vec<SocketAddr>>>>);

impl KnownAddresses {
    fn lock(&self) -> MutexGuard<'_, HashMap<ServerAddress, Vec<SocketAddr>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set(&self, server: &ServerAddress, addresses: &[SocketAddr]) {
        self.lock().insert(server.clone(), addresses.to_vec());
    }

    pub(super) fn get(&self, server: &ServerAddress) -> Vec<SocketAddr> {
        self.lock().get(server).cloned().unwrap_or_default()
    }

    /// Drops the addresses of all other servers.
    pub(super) fn keep(&self, servers: &[ServerAddress]) {
        self.lock().retain(|server, _| servers.contains(server));
    }
}

/// Servers whose links were abandoned with unanswered writes, each with the time.
///
/// A server that is cut off from its leader keeps such writes and forwards them when it can. The leader
/// refuses these writes once the session has moved to another server, unless the client has meanwhile
/// attached the session to the first server again (decision 11).
#[derive(Debug, Clone, Default)]
pub(super) struct AbandonedServers(Arc<Mutex<HashMap<SocketAddr, Instant>>>);

impl AbandonedServers {
    fn lock(&self) -> MutexGuard<'_, HashMap<SocketAddr, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, server: SocketAddr) {
        self.lock().insert(server, Instant::now());
    }

    pub(super) fn forget(&self, server: SocketAddr) {
        self.lock().remove(&server);
    }

    /// Returns the servers left within the last two session timeouts. Older writes have been forwarded or
    /// dropped, or their session has ended.
    pub(super) fn since(&self, session_timeout: Duration) -> HashMap<SocketAddr, Instant> {
        let mut servers = self.lock();
        servers.retain(|_, at| at.elapsed() < session_timeout.saturating_mul(2));
        servers.clone()
    }
}

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
