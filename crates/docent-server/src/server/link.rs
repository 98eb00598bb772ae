use crate::net::{Hub, SharedShape};
use std::fmt;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// One client's link, on which faults can be played; see [`Server::links`](crate::Server::links) and
/// [`Server::link_of`](crate::Server::link_of).
///
/// Faults are those of the network below the link, and last until [`heal`](Self::heal). The session does not
/// know of them: when it ends, or moves to another link, this one is closed also while it is frozen. At most
/// 1 MiB waits in each direction, then nothing more is taken.
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
    /// The client's address.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// The session that it serves; `None` before the handshake, and when it is closed.
    pub fn session(&self) -> Option<i64> {
        self.hub.lock().session_of(self.id)
    }

    /// True until it is closed, by either side.
    pub fn is_open(&self) -> bool {
        self.hub.lock().links.parts(self.id).is_some()
    }

    /// Closes it. Its session lives on, and the client may come back at once.
    pub fn close(&self) {
        self.hub.lock().cut(self.id);
    }

    /// Lets nothing pass in either direction, as a network that stalls. Bytes wait, and the server does not
    /// hear of the session.
    pub fn freeze(&self) {
        self.shape.change(|shape| shape.frozen = true);
        self.wake.notify_one();
    }

    /// Delays all that comes in from now on, each way by `delay`, without reordering it.
    pub fn delay(&self, delay: Duration) {
        self.shape.change(|shape| shape.delay = delay);
        self.wake.notify_one();
    }

    /// Passes at most so many bytes in a second, each way.
    pub fn throttle(&self, bytes_per_second: NonZeroU32) {
        self.shape.change(|shape| shape.bytes_per_second = Some(bytes_per_second));
        self.wake.notify_one();
    }

    /// Ends all of that. Bytes that waited pass at once.
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
