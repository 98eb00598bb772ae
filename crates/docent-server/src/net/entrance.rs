use super::hub::Hub;
use super::link::{self, Place};
use super::listener::Listener;
use super::members::MemberId;
use std::io;
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
                tracing::warn!(%error, "accepting a link failed");
                if is_out_of_files(&error) {
                    self.hub.lock().expel_without_session();
                }
                sleep(AFTER_REFUSAL).await;
            }
        }
    }
}

/// True for the errors of Unix that tell of too many open files, in the system or in the process.
fn is_out_of_files(error: &io::Error) -> bool {
    const ENFILE: i32 = 23;
    const EMFILE: i32 = 24;
    matches!(error.raw_os_error(), Some(ENFILE | EMFILE))
}
