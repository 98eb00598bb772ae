//! Faults that a test plays on a server.

use crate::net::{LEADER, Unanswered};
use crate::{Armed, Link, Operation, Server, StartError};
use std::sync::Arc;

impl Server {
    /// The open links in the order they were made, those of followers too.
    pub fn links(&self) -> Vec<Link> {
        let ids = self.hub.lock().links.ids();
        ids.into_iter().filter_map(|id| self.link(id)).collect()
    }

    /// The link of a session; `None` when it has none, or only one of a follower that is cut off.
    pub fn link_of(&self, session: i64) -> Option<Link> {
        let id = self.hub.lock().links.of_session(LEADER, session);
        self.link(id?)
    }

    fn link(&self, id: u64) -> Option<Link> {
        let (peer, wake, shape) = self.hub.lock().links.parts(id)?;
        Some(Link { hub: Arc::clone(&self.hub), id, peer, wake, shape })
    }

    /// Closes the link of a session, and tells the next one that asks for the session that there is none,
    /// although it lives on with a full timeout: as a leader does that has lost its followers and ends
    /// sessions by its own clock, of which the next leader knows nothing. False when there is no such
    /// session.
    pub fn deny_session(&self, session: i64) -> bool {
        let now = self.hub.clock.now_ms();
        let mut ensemble = self.hub.lock();
        let denied = ensemble.state.deny(session, now);
        let link = ensemble.links.of_session(LEADER, session).filter(|_| denied);
        link.into_iter().for_each(|link| ensemble.cut(link));
        denied
    }

    /// Closes new links as soon as they are made, those of followers too, until it is called with `false`.
    /// Present ones stay. Sessions expire meanwhile, other than after
    /// [`stop_listening`](Self::stop_listening).
    pub fn refuse_links(&self, refuses: bool) {
        self.hub.lock().faults.refuses_links = refuses;
    }

    /// Leaves out the reply to the `nth` request, counted from 1 and from now on, that is `operation` on the
    /// node `path` or one below it: it is applied, its client hears nothing of it, and the link stays. Later
    /// requests are answered: a client may take their replies for a breach of the protocol.
    ///
    /// Requests count over all links, those of followers too, unless they wait in a follower that is cut off.
    /// It happens once. `"/"` stands for all nodes; 0 is taken for 1.
    pub fn swallow_reply(&self, operation: Operation, path: &str, nth: usize) -> Armed {
        self.hub.lock().faults.add(operation, path, nth, Unanswered::Swallowed)
    }

    /// Closes the link in place of the reply to a request, as [`swallow_reply`](Self::swallow_reply) finds
    /// it: the request is applied, and its client cannot know.
    pub fn break_after(&self, operation: Operation, path: &str, nth: usize) -> Armed {
        self.hub.lock().faults.add(operation, path, nth, Unanswered::Broken)
    }

    /// Makes the server read-only, or ends that: as a ZooKeeper server with `readonlymode.enabled` and local
    /// sessions that has lost its quorum. It closes all links, and followers take none meanwhile.
    ///
    /// While it is read-only:
    /// - A link without the read-only flag in its handshake is closed, and so is one that asks for a session
    ///   of before: those neither expire nor end, and each has its full timeout afterwards.
    /// - Other links get a session that this server alone knows of, without a transaction. It ends by its
    ///   timeout, with its client's word, and in any case with the mode.
    /// - Writes and syncs are answered with
    ///   [`Code::NOT_READ_ONLY`](docent_proto::Code::NOT_READ_ONLY); reads and watches are served.
    pub fn set_read_only(&self, read_only: bool) {
        let now = self.hub.clock.now_ms();
        self.hub.lock().set_read_only(read_only, now);
    }

    /// Restarts the server without its state: to clients another server in its place, which has never been
    /// used. Their sessions have ended, and all nodes are gone. Transactions and sessions get later numbers;
    /// the journal goes on, and tells that sessions were [lost](crate::EndCause::Lost) and nodes deleted.
    ///
    /// # Errors
    /// As [`listen_again`](Self::listen_again).
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the server may listen or not, and have its state or not.
    pub async fn restart_empty(&self) -> Result<(), StartError> {
        self.stop_listening().await?;
        self.hub.lock().state.lose_everything(self.hub.clock.now_ms());
        self.listen_again().await
    }
}
