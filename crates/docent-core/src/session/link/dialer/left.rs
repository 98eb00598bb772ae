use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Servers that were left with writes unanswered, and when.
///
/// One that is cut off from its leader keeps them, and passes them on when it can. A leader refuses them once the session has
/// moved to another server, unless it has meanwhile been asked for on this one again.
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

    /// Those of the last two session timeouts: by then what they held has been passed on or dropped, or its session is over.
    pub(super) fn since(&self, session_timeout: Duration) -> HashMap<SocketAddr, Instant> {
        let mut left = self.lock();
        left.retain(|_, at| at.elapsed() < session_timeout.saturating_mul(2));
        left.clone()
    }
}
