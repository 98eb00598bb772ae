use super::known_addresses::KnownAddresses;
use super::last_error::LastError;
use super::left::Left;
use super::link_news::LinkNews;
use crate::session::connect_string::ServerAddress;
use crate::session::link::rollback::Refusals;
use crate::session::link::transport::Transport;
use crate::telemetry::Instruments;
use std::sync::Arc;
use tokio::sync::watch;

/// Knowledge of a client about its servers, over all of its sessions.
#[derive(Debug, Clone)]
pub(crate) struct Ensemble {
    pub(super) transport: Arc<dyn Transport>,
    pub(crate) servers: Servers,
    pub(super) known: KnownAddresses,
    pub(super) left: Left,
    pub(crate) last_error: LastError,
    pub(super) refusals: Refusals,
    pub(crate) news: LinkNews,
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
            left: Left::default(),
            last_error: LastError::default(),
            refusals: Refusals::default(),
            news: LinkNews::new(instruments),
        }
    }

    /// The same servers, for links besides the client's own, whose fate says nothing about the client's link.
    pub(in crate::session) fn aside(&self) -> Self {
        let news = self.news.aside();
        Self { last_error: LastError::default(), refusals: Refusals::default(), news, ..self.clone() }
    }
}

/// Present list of servers to connect to.
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
