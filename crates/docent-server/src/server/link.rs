use crate::net::{Hub, SharedShape};
use std::fmt;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// A client's link, into which faults can be injected. See [`Server::links`](crate::Server::links) and
/// [`Server::link_of`](crate::Server::link_of).
///
/// The faults emulate those of the network, and last until [`heal`](Self::heal). The session does not know of
/// them: if it ends or moves to another link, this link is closed even while it is frozen. At most 1 MiB
/// waits in each direction; beyond that, nothing more is accepted.
///
/// # On drop
/// The link and its faults stay.
#[derive(Clone)]
pub struct Link {
    pub(crate) hub: Arc<Hub>,
    pub(crate) id: u64,
    pub(crate) peer: SocketAddr,
    pub(crate) wake: Arc<Notify>,
    pub(crate) shape: SharedShape,
}

impl Link {
    /// Returns the client's address.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Returns the session of the link; `None` before the handshake and after the link is closed.
    pub fn session(&self) -> Option<i64> {
        self.hub.lock().session_of(self.id)
    }

    /// Returns whether the link is open, that is, closed by neither side.
    pub fn is_open(&self) -> bool {
        self.hub.lock().links.parts(self.id).is_some()
    }

    /// Closes the link. Its session continues, and the client may reconnect immediately.
    pub fn close(&self) {
        self.hub.lock().cut(self.id);
    }

    /// Stops all traffic in both directions, like a network that stalls. Bytes wait, and the server receives
    /// nothing from the session.
    pub fn freeze(&self) {
        self.shape.change(|shape| shape.frozen = true);
        self.wake.notify_one();
    }

    /// Delays all bytes that arrive from now on by `delay`, in both directions, without reordering them.
    pub fn delay(&self, delay: Duration) {
        self.shape.change(|shape| shape.delay = delay);
        self.wake.notify_one();
    }

    /// Limits the throughput to `bytes_per_second` in each direction.
    pub fn throttle(&self, bytes_per_second: NonZeroU32) {
        self.shape.change(|shape| shape.bytes_per_second = Some(bytes_per_second));
        self.wake.notify_one();
    }

    /// Ends all faults of the link. Waiting bytes pass immediately.
    pub fn heal(&self) {
        self.shape.change(|shape| *shape = Default::default());
        self.wake.notify_one();
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("peer", &self.peer).finish_non_exhaustive()
    }
}
