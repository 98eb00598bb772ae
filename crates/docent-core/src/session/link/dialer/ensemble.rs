use super::abandoned_servers::AbandonedServers;
use super::known_addresses::KnownAddresses;
use super::last_error::LastError;
use super::link_status::LinkStatus;
use crate::session::connect_string::ServerAddress;
use crate::session::link::rollback::Refusals;
use crate::session::link::transport::Transport;
use crate::telemetry::Instruments;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// What a client knows about its servers, across all of its sessions.
#[derive(Debug, Clone)]
pub(crate) struct Ensemble {
    pub(super) transport: Arc<dyn Transport>,
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
