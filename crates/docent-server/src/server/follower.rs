use crate::Dialect;
use crate::net::{Hub, MemberId};
use crate::time::{millis, timeouts_ms};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// A follower of a [`Server`](crate::Server), which is its leader. It is another listener on the same tree
/// and sessions, and can be cut off from the leader. [`Server::follower`](crate::Server::follower) creates
/// one.
///
/// # Same as in an ensemble
/// - A request that a client sends through a follower, even a write, extends its session only when the
///   follower *relays* the session to the leader: the timeout counts from the relay. Only the opening or
///   attaching of a session is reported to the leader immediately.
/// - A relay carries the timeout that was granted on the link, which may differ from the leader's.
/// - A follower that is [cut off](Self::cut_off) does not notice for a while, and neither do its clients.
///
/// # Different from an ensemble
/// - The follower shows each change immediately, unless it is set to [lag](Self::set_lag), and messages to
///   the leader take no time. Even if it lags, watches fire immediately, and `getACL` shows the present.
/// - A session that moves closes its old link immediately, unless that is a link to a follower that is cut
///   off. ZooKeeper closes a link on another server only at its next write.
/// - A follower that rejoins drops its links, which in ZooKeeper may survive a short outage. Messages that it
///   had not passed on are lost, or delivered late after [`cut_off_holding`](Self::cut_off_holding).
/// - There are no elections. No follower becomes the leader, and none serves read-only sessions.
///
/// # On drop
/// The listener and the follower's links are closed, without waiting. The follower also stops with its
/// server.
#[must_use = "the follower stops when it is dropped"]
pub struct Follower {
    pub(crate) hub: Arc<Hub>,
    pub(crate) member: MemberId,
    pub(crate) changed: Arc<Notify>,
    pub(crate) stop: CancellationToken,
    pub(crate) task: JoinHandle<()>,
    pub(crate) address: SocketAddr,
    pub(crate) connect_string: String,
    pub(crate) sync_limit: Duration,
}

impl Follower {
    /// Returns the address that the follower listens on.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Returns the address as clients need it: `127.0.0.1:port`.
    pub fn connect_string(&self) -> &str {
        &self.connect_string
    }

    /// Cuts the follower off from its leader. Does nothing if it already is.
    ///
    /// From now on, the follower shows its clients the tree as it is at this moment. It answers pings and
    /// reads, even for sessions that end in the meantime, and no watch on it fires. It swallows messages for
    /// the leader: a write, a sync or the end of a session is never applied, and later requests on the same
    /// link are not answered. A handshake gets no answer. The leader learns of no session any more, not even
    /// from requests that were sent but not relayed yet, and expires the sessions after their timeouts.
    ///
    /// After the [sync limit](crate::FollowerBuilder::sync_limit) the follower gives up: it closes its links,
    /// and any new link immediately.
    pub fn cut_off(&self) {
        self.lose_leader(false);
    }

    /// Cuts the follower off as [`cut_off`](Self::cut_off) does, but holds messages for the leader until
    /// [`rejoin`](Self::rejoin) and then delivers them. An ensemble behaves like this if the network between
    /// the two servers fails for less than the sync limit.
    ///
    /// A held message is not tied to the link that it arrived on. In the meantime, its client may have
    /// dropped the link, moved to another member, and used `sync` and a read there to find that the write was
    /// not applied. On delivery:
    /// - Writes are applied in the order of arrival, over all links, each with the identities of the client
    ///   that sent it.
    /// - A write of a session that has ended is refused. So is a write of a session that has moved to another
    ///   member, with one exception.
    /// - The exception is a session that had asked *this* follower for a new link, before or after it moved
    ///   elsewhere. The leader takes that request for the latest move and applies the old writes
    ///   (ZOOKEEPER-2886). The session's real link is closed at its next write.
    /// - The end of a session is never refused.
    /// - The leader learns which sessions the follower received something from, with the first relay after
    ///   the follower is back.
    ///
    /// If the follower gives up at the [sync limit](crate::FollowerBuilder::sync_limit), or the server stops,
    /// all held messages are lost. New sessions that clients requested are never opened.
    pub fn cut_off_holding(&self) {
        self.lose_leader(true);
    }

    /// Returns the number of held writes and session moves, after [`cut_off_holding`](Self::cut_off_holding).
    pub fn held_count(&self) -> usize {
        self.hub.lock().members.held_count(self.member)
    }

    fn lose_leader(&self, holds: bool) {
        let until = self.hub.clock.now_ms().saturating_add(millis(self.sync_limit));
        self.hub.lock().cut_off(self.member, until, holds);
        self.changed.notify_one();
    }

    /// Reconnects a follower that was cut off to its leader. The follower closes the links it still has,
    /// delivers the messages that it [held](Self::cut_off_holding), and serves the live tree to clients that
    /// connect. Does nothing if the follower is not cut off.
    pub fn rejoin(&self) {
        let now = self.hub.clock.now_ms();
        self.hub.lock().rejoin(self.member, now);
    }

    /// Sets the minimum and maximum session timeout for clients of this follower from now on. See
    /// [`Server::set_session_timeouts`](crate::Server::set_session_timeouts).
    pub fn set_session_timeouts(&self, min: Duration, max: Duration) {
        self.hub.lock().members.set_timeouts_ms(self.member, timeouts_ms(min, max));
    }

    /// Sets the dialect that the follower answers its clients in, as in an ensemble that is being upgraded.
    /// See [`Server::set_dialect`](crate::Server::set_dialect).
    pub fn set_dialect(&self, dialect: Dialect) {
        self.hub.lock().members.set_dialect(self.member, dialect);
    }

    /// Sets how far the follower lags behind its leader; zero, the default, for no lag.
    ///
    /// A follower that lags answers `exists`, `getData`, `getChildren` and `multiRead` from the tree as it
    /// was that long ago. If such a read sets a watch on a node that has changed since then, the follower
    /// catches up right after the answer, and the watch fires. A persistent watch fires for each change.
    ///
    /// A client is never shown a state older than one it knows of from its handshake, a reply or a watch
    /// event on this link. A read after a `sync`, or after a write of its own, therefore shows the tree as it
    /// was when that request was answered. However, a client that comes with a new link may not find a node
    /// that was created before it lost the old one. The header of such a reply, and of a ping's reply,
    /// carries the transaction that is shown.
    ///
    /// While a follower lags, the server copies its tree before each write, and keeps the copies and the
    /// changes for the duration of the lag. This is meant for small trees. A follower that is [cut
    /// off](Self::cut_off) shows nothing older than the moment of the cut.
    pub fn set_lag(&self, lag: Duration) {
        self.hub.lock().set_lag_ms(self.member, millis(lag));
    }

    /// Closes the follower's links. Their sessions continue, and clients may reconnect immediately.
    pub fn drop_links(&self) {
        self.hub.lock().cut_links_of(self.member);
    }

    /// Returns the number of the follower's links.
    pub fn connection_count(&self) -> usize {
        self.hub.lock().links.of_member(self.member).len()
    }

    /// Closes the listener and the links, and waits until the follower no longer listens.
    ///
    /// # Cancel safety
    /// This method is cancel safe. The follower stops in any case.
    pub async fn stop(mut self) {
        self.stop.cancel();
        // A task that was aborted with its runtime has stopped too.
        let _ = (&mut self.task).await;
    }
}

// The state contains user data, so only the address is printed, as for the server.
impl fmt::Debug for Follower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Follower").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.stop.cancel();
        self.hub.lock().give_up(self.member);
    }
}
