use crate::instance::{EncodedInstance, is_loopback};
use crate::layout::{Placement, ServiceSide};
use crate::neighbour;
use bytes::Bytes;
use docent_core::recipe::{Preparation, full_path};
use docent_core::{Client, Error};
use std::sync::Arc;
use std::time::Duration;

/// Bytes of a request besides an instance's path and data.
const FIELDS: usize = 1024;

/// Place of a registration's nodes, and what they have in common.
pub(crate) struct Announcer {
    pub(super) client: Client,
    placement: Placement,
    pub(super) service: String,
    side: ServiceSide,
    /// Time for which the instance is disabled before the client's shutdown removes it.
    pub(super) drain: Duration,
    /// Work that precedes each write of new data.
    pub(super) preparation: Option<Arc<Preparation>>,
}

impl Announcer {
    pub(crate) fn new(
        client: &Client,
        placement: &Placement,
        service: String,
        side: ServiceSide,
        drain: Duration,
    ) -> Self {
        let preparation = neighbour::preparation(client, placement, &service, side);
        Self { client: client.clone(), placement: placement.clone(), service, side, drain, preparation }
    }

    /// Returns the path and data of an instance's node, if they fit into a request.
    pub(super) fn node(&self, encoded: &EncodedInstance) -> Result<(String, Bytes), Error> {
        let (path, data) = self.placement.node(&self.service, self.side, encoded)?;
        let most = self.client.max_request();
        let size = path.len() + data.len() + FIELDS;
        if size > most {
            return Err(Error::too_large("register", size, most).at(&path));
        }
        Ok((path, data))
    }

    /// Returns the [node](Self::node) of an instance that is about to be announced, and logs the start.
    pub(super) fn first_node(&self, encoded: &EncodedInstance) -> Result<(String, Bytes), Error> {
        let (path, data) = self.node(encoded)?;
        // Event: The client starts to announce an instance of a service.
        tracing::info!(target: "docent::discovery", client = %self.client.label(), service = self.service, id = encoded.id, path = %full_path(&self.client, &path), "registering an instance");
        self.warn_of_loopback(encoded);
        Ok((path, data))
    }

    /// Warns of an instance that only callers on its own host can reach. If the servers are on that host as
    /// well, as in development, this is no surprise.
    fn warn_of_loopback(&self, encoded: &EncodedInstance) {
        let Some(address) = encoded.address.as_deref().filter(|address| is_loopback(address)) else { return };
        if self.client.servers().iter().all(|server| is_loopback(&server.host)) {
            return;
        }
        // Event: An instance was registered with a loopback address, while the servers are on other hosts. A
        // caller on another host that picks this instance connects to its own host instead.
        // Action: Register the host name or the IP address at which callers reach the process.
        tracing::warn!(
            target: "docent::discovery",
            client = %self.client.label(),
            service = self.service,
            id = encoded.id,
            address,
            "registering a loopback address, which callers on other hosts cannot reach"
        );
    }
}
