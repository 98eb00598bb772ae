use super::hub::Hub;
use super::link::{self, Place};
use super::listener::Listener;
use super::members::MemberId;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;
use tokio_util::task::TaskTracker;

/// Accepts the links of a member's listener.
pub(crate) struct Entrance {
    pub(crate) hub: Arc<Hub>,
    pub(crate) member: MemberId,
    pub(crate) links: TaskTracker,
    /// Time limit for the handshake of a link.
    pub(crate) handshake: Duration,
}

/// Pause after the operating system failed to accept a connection, for example because the process has no
/// file descriptors left.
const AFTER_REFUSAL: Duration = Duration::from_millis(50);

impl Entrance {
    /// Accepts the next link.
    pub(crate) async fn admit<L: Listener>(&self, listener: &mut L) {
        match listener.accept().await {
            Ok((io, peer)) => {
                // If there is no place for the link, the link is dropped, which closes it.
                if let Some(place) = Place::enter(&self.hub, peer, self.member) {
                    self.links.spawn(link::run(io, place, self.handshake));
                }
            }
            Err(error) => {
                self.hub.lock().not_accepted(error);
                sleep(AFTER_REFUSAL).await;
            }
        }
    }
}
