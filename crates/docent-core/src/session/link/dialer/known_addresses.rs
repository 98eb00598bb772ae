use crate::session::connect_string::ServerAddress;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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
