use super::ZookeeperClient;
use super::shared::Shared;
use crate::session::link::dialer::{Ensemble, Start, pace};
use crate::session::{LinkError, SessionEnd};
use crate::time::{Backoff, Timestamp};
use std::time::Duration;
use zookeeper_client as zk;

/// Opens a session, in as many attempts as necessary.
pub(super) struct Connect {
    pub(super) options: ZookeeperClient,
    ensemble: Ensemble,
    pause_first: bool,
    backoff: Backoff,
}

impl Connect {
    pub(super) fn new(options: ZookeeperClient, ensemble: Ensemble, start: Start) -> Self {
        Self { options, ensemble, pause_first: start == Start::Jittered, backoff: pace() }
    }

    /// Returns the session, and the time at which it was requested. Never resolves if the servers refuse the
    /// client, because that ends the session.
    pub(super) async fn session(&mut self, shared: &Shared) -> (zk::Client, Timestamp) {
        if self.pause_first {
            self.pause().await;
        }
        loop {
            let sent = shared.clock.now();
            let connecting = LinkError::Connecting { server: self.connect_string() };
            self.ensemble.link_status.waits_for(None, connecting);
            match self.attempt(shared).await {
                Ok(client) => {
                    self.attached();
                    return (client, sent);
                }
                Err(zk::Error::AuthFailed) => {
                    self.lost(zk::Error::AuthFailed.to_string());
                    shared.end(SessionEnd::AuthFailed);
                    std::future::pending::<()>().await;
                }
                Err(error) => {
                    self.lost(error.to_string());
                    self.pause().await;
                }
            }
        }
    }

    async fn attempt(&self, shared: &Shared) -> Result<zk::Client, zk::Error> {
        let connector = self.options.connector()?;
        // The crate's own pauses between rounds double without a limit, so each attempt is one round.
        let connector = connector.with_session_timeout(shared.settings.timeout).with_fail_eagerly();
        let credentials = shared.settings.credentials.iter();
        let connector = credentials.fold(connector, |connector, credentials| credentials.add_to(connector));
        let client = connector.connect(&self.connect_string()).await?;
        if shared.settings.last_zxid > 0 {
            // The crate does not report to a server which transactions an earlier session has seen, so the
            // server must catch up with its leader.
            client.sync("/").await?;
        }
        Ok(client)
    }

    /// Returns the servers in the format of the crate.
    fn connect_string(&self) -> String {
        let scheme = if self.options.wants_tls() { "tcp+tls://" } else { "" };
        let servers: Vec<_> =
            self.ensemble.servers.borrow().iter().map(|server| format!("{scheme}{server}")).collect();
        servers.join(",")
    }

    async fn pause(&mut self) {
        tokio::time::sleep(self.backoff.next().unwrap_or(Duration::from_secs(1))).await;
    }

    /// Records the reason why there is no link.
    pub(super) fn lost(&self, reason: String) {
        let error = LinkError::ZookeeperClient(reason);
        // Event: The crate `zookeeper-client` is not connected to a server; the field `error` says why. The
        // crate or the client keeps retrying, unless the servers refused the client's credentials.
        tracing::debug!(target: "docent::session", client = %self.ensemble.link_status.client(), %error, "not connected");
        self.ensemble.link_status.failed(None, error);
    }

    /// Records that an attached link was lost.
    pub(super) fn link_lost(&self) {
        let reason = "the connection was lost".to_owned();
        self.ensemble.link_status.lost(LinkError::ZookeeperClient(reason.clone()));
        self.lost(reason);
    }

    pub(super) fn attached(&self) {
        // The crate does not report to which of the servers it is connected.
        self.ensemble.link_status.attached(self.connect_string());
    }
}
