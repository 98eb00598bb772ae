//! Faults that a test injects into a server.

use crate::net::{LEADER, Unanswered};
use crate::{Armed, Link, Operation, Server, StartError};
use std::sync::Arc;

impl Server {
    /// Returns the open links in the order of their creation, including those of followers.
    pub fn links(&self) -> Vec<Link> {
        let ids = self.hub.lock().links.ids();
        ids.into_iter().filter_map(|id| self.link(id)).collect()
    }

    /// Returns the link of a session; `None` if there is none, or only a link to a follower that is cut off.
    pub fn link_of(&self, session: i64) -> Option<Link> {
        let id = self.hub.lock().links.of_session(LEADER, session);
        self.link(id?)
    }

    fn link(&self, id: u64) -> Option<Link> {
        let (peer, wake, shape) = self.hub.lock().links.parts(id)?;
        Some(Link { hub: Arc::clone(&self.hub), id, peer, wake, shape })
    }

    /// Closes the link of a session, and denies the session to the next link that asks for it, although the
    /// session continues with a full timeout. A real ensemble does this when a leader that has lost its
    /// followers ends sessions by its own clock, which the next leader does not know about. Returns `false`
    /// if there is no such session.
    pub fn deny_session(&self, session: i64) -> bool {
        let now = self.hub.clock.now_ms();
        let mut ensemble = self.hub.lock();
        let denied = ensemble.state.deny(session, now);
        let link = ensemble.links.of_session(LEADER, session).filter(|_| denied);
        link.into_iter().for_each(|link| ensemble.cut(link));
        denied
    }

    /// Sets whether new links are closed immediately, including those of followers. Open links are not
    /// affected. Sessions expire meanwhile, unlike after [`stop_listening`](Self::stop_listening).
    pub fn refuse_links(&self, refuses: bool) {
        self.hub.lock().faults.refuses_links = refuses;
    }

    /// Suppresses the reply to the `nth` request from now on that is `operation` on the node `path` or on one
    /// below it, counted from 1. The server applies the request, its client gets no reply, and the link stays
    /// open. Later requests are answered, so a client may see their replies as a violation of the protocol.
    ///
    /// Requests are counted over all links, including those of followers, unless they wait in a follower that
    /// is cut off. The fault happens once. `"/"` means all nodes, and 0 is treated as 1.
    pub fn swallow_reply(&self, operation: Operation, path: &str, nth: usize) -> Armed {
        self.hub.lock().faults.add(operation, path, nth, Unanswered::Swallowed)
    }

    /// Closes the link in place of the reply to a request, selected as by
    /// [`swallow_reply`](Self::swallow_reply). The server applies the request, and its client cannot know the
    /// outcome.
    pub fn break_after(&self, operation: Operation, path: &str, nth: usize) -> Armed {
        self.hub.lock().faults.add(operation, path, nth, Unanswered::Broken)
    }

    /// Enters or leaves read-only mode, like a ZooKeeper server with `readonlymode.enabled` and local
    /// sessions that has lost its quorum. Each change of the mode closes all links. Followers accept no links
    /// in this mode.
    ///
    /// In read-only mode:
    /// - A link without the read-only flag in its handshake is closed, and so is one that asks for a session
    ///   opened before. Those sessions neither expire nor end, and get their full timeout when the mode ends.
    /// - Other links get a local session, which only this server knows and which needs no transaction. It
    ///   ends by its timeout, when its client closes it, or when the mode ends.
    /// - Writes and syncs fail with [`Code::NOT_READ_ONLY`](docent_proto::Code::NOT_READ_ONLY). Reads and
    ///   watches are served.
    pub fn set_read_only(&self, read_only: bool) {
        let now = self.hub.clock.now_ms();
        self.hub.lock().set_read_only(read_only, now);
    }

    /// Restarts the server without its state. Clients see another server in its place, which has never been
    /// used: their sessions have ended, and all nodes are deleted. Transactions and sessions get later
    /// numbers. The journal continues, and records that the sessions were [lost](crate::EndCause::Lost) and
    /// the nodes deleted.
    ///
    /// # Errors
    /// See [`listen_again`](Self::listen_again).
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the server may or may not listen, and may or may not have lost its
    /// state.
    pub async fn restart_empty(&self) -> Result<(), StartError> {
        self.stop_listening().await?;
        self.hub.lock().state.lose_everything(self.hub.clock.now_ms());
        self.listen_again().await
    }
}
