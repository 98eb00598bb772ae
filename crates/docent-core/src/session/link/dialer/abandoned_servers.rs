use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

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
