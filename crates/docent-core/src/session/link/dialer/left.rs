use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Servers whose links were given up with writes unanswered, each with the time.
///
/// A server that is cut off from its leader keeps such writes, and passes them on when it can. A leader
/// refuses them once the session has moved to another server, unless the session has meanwhile been asked for
/// on this server again (decision 11).
#[derive(Debug, Clone, Default)]
pub(super) struct Left(Arc<Mutex<HashMap<SocketAddr, Instant>>>);

impl Left {
    fn lock(&self) -> MutexGuard<'_, HashMap<SocketAddr, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn note(&self, server: SocketAddr) {
        self.lock().insert(server, Instant::now());
    }

    pub(super) fn forget(&self, server: SocketAddr) {
        self.lock().remove(&server);
    }

    /// Servers left within the last two session timeouts. Older writes have been passed on or dropped by now,
    /// or their session is over.
    pub(super) fn since(&self, session_timeout: Duration) -> HashMap<SocketAddr, Instant> {
        let mut left = self.lock();
        left.retain(|_, at| at.elapsed() < session_timeout.saturating_mul(2));
        left.clone()
    }
}
