use super::hub::Hub;
use super::link::{self, Place};
use super::listener::Listener;
use super::members::MemberId;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;
use tokio_util::task::TaskTracker;

/// Entrance of a member: takes in the links that its listener hands over.
pub(crate) struct Entrance {
    pub(crate) hub: Arc<Hub>,
    pub(crate) member: MemberId,
    pub(crate) links: TaskTracker,
    /// Time that a link has for its handshake.
    pub(crate) handshake: Duration,
}

/// Pause after the operating system refused to hand a link over, such as for want of file descriptors.
const AFTER_REFUSAL: Duration = Duration::from_millis(50);

impl Entrance {
    /// Takes the next link in.
    pub(crate) async fn admit<L: Listener>(&self, listener: &mut L) {
        match listener.accept().await {
            Ok((io, peer)) => {
                // Without a place the link is dropped, which closes it.
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
