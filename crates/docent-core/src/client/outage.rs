use super::ConnectionState;
use crate::operation::Shared;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Time after the loss of the connection in which a shutdown or close still waits for the servers to return.
/// A client finds another server of the ensemble faster than that.
const SERVERS_RETURN: Duration = Duration::from_secs(2);

/// Waits until the client has been without a connection for so long that its end no longer waits for what
/// needs a server. Resolves immediately for a client that never had a connection.
pub(super) async fn servers_unreachable(shared: &Shared) {
    let mut connection = shared.connection.subscribe();
    loop {
        let is_connected = connection.borrow_and_update().state == ConnectionState::Connected;
        let link = &shared.ensemble.link_status;
        // A client with a new link is connected once it has restored its watches and nodes.
        let is_attached = link.is_attached();
        let end = match link.lost_at() {
            _ if is_attached => Instant::now() + SERVERS_RETURN,
            Some(lost) => lost + SERVERS_RETURN,
            None => Instant::now(),
        };
        tokio::select! {
            // The client's own state has the sender, so the channel is open.
            _ = connection.changed() => {}
            () = sleep_until(end), if !is_connected => {
                if !is_attached {
                    return;
                }
            }
        }
    }
}
