use crate::net::{Hub, MemberId};
use crate::time::{millis, timeouts_ms};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// A follower of a [`Server`](crate::Server), which is its leader: one more listener on the same tree and
/// sessions, that can be cut off. Made by [`Server::follower`](crate::Server::follower).
///
/// # What is as in an ensemble
/// - A request that a client sends through a follower, a write too, puts the end of its session off only once
///   that was *relayed* to the leader: the timeout counts from the relay. The leader hears at once of a
///   session that is opened or attached.
/// - A relay carries the timeout that was granted on the link, which may be another one than the leader's.
/// - A follower that is [cut off](Self::cut_off) does not know that for a while, and neither do its clients.
///
/// # What is not
/// - It shows each change at once, unless it is told to [lag](Self::set_lag), and messages to the leader take
///   no time. Watches come true at once also where it lags; `getACL` shows the present, too.
/// - A session that moves closes its old link at once, unless that is one of a follower that is cut off.
///   ZooKeeper closes a link on another server only at its next write.
/// - A follower that rejoins drops its links, which in ZooKeeper may survive a short cut. Messages that it
///   had not passed on are lost, or delivered late after [`cut_off_holding`](Self::cut_off_holding).
/// - There is no election, no follower becomes the leader, and none serves read-only sessions.
///
/// # On drop
/// The listener and the follower's links are closed, without waiting. It ends with its server, too.
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
    /// The address it listens on.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// The address as clients want it: `127.0.0.1:port`.
    pub fn connect_string(&self) -> &str {
        &self.connect_string
    }

    /// Cuts the follower off from its leader. Nothing happens when it is already.
    ///
    /// From now on it shows its clients the tree as it is at this moment. It answers pings and reads, also of
    /// sessions that have ended in the meantime, and no watch on it fires. It swallows messages for the
    /// leader: a write, a sync or the end of a session is never applied, and nothing that is sent behind it
    /// on the same link is answered; a handshake gets no answer. The leader hears of no session any more, not
    /// even of requests that were sent but not yet relayed; it expires them in their time.
    ///
    /// After the [sync limit](crate::FollowerBuilder::sync_limit) it gives up: it closes its links, and new
    /// ones at once.
    pub fn cut_off(&self) {
        self.lose_leader(false);
    }

    /// Cuts the follower off as [`cut_off`](Self::cut_off) does, but messages for the leader wait for
    /// [`rejoin`](Self::rejoin) and are delivered then, as they are in an ensemble where the network between
    /// the two fails for less than the sync limit.
    ///
    /// A waiting message is not tied to the link it came over: the client may have dropped that, moved to
    /// another member, and seen by `sync` and a read there that nothing was done. In the end:
    /// - Writes are made in the order they came, over all links, each as the client that it was sent by.
    /// - A write of a session that ended is refused. So is one of a session that was attached to another
    ///   member meanwhile, with one exception:
    /// - If the session had asked *this* follower for a new link before it went elsewhere, or since, the
    ///   leader takes that for the latest move, and the old writes pass (ZOOKEEPER-2886). The link that the
    ///   session really has is closed at its next write.
    /// - The end of a session is never refused.
    /// - The leader hears which sessions the follower heard from, with the next relay after it is back.
    ///
    /// When the follower gives up at the [sync limit](crate::FollowerBuilder::sync_limit), or the server goes
    /// away, all of it is lost. Sessions that clients asked to be opened are never opened.
    pub fn cut_off_holding(&self) {
        self.lose_leader(true);
    }

    /// Number of writes and moves of sessions that wait for the leader, after
    /// [`cut_off_holding`](Self::cut_off_holding).
    pub fn held_count(&self) -> usize {
        self.hub.lock().members.held_count(self.member)
    }

    fn lose_leader(&self, holds: bool) {
        let until = self.hub.clock.now_ms().saturating_add(millis(self.sync_limit));
        self.hub.lock().cut_off(self.member, until, holds);
        self.changed.notify_one();
    }

    /// Lets a follower that was cut off find its leader again. It closes the links it still has, delivers the
    /// messages it [held](Self::cut_off_holding), and serves the live tree to clients that connect. Nothing
    /// happens when it was not cut off.
    pub fn rejoin(&self) {
        let now = self.hub.clock.now_ms();
        self.hub.lock().rejoin(self.member, now);
    }

    /// Sets the shortest and the longest session timeout granted from now on to clients of this follower; see
    /// [`Server::set_session_timeouts`](crate::Server::set_session_timeouts).
    pub fn set_session_timeouts(&self, min: Duration, max: Duration) {
        self.hub.lock().members.set_timeouts_ms(self.member, timeouts_ms(min, max));
    }

    /// Answers clients of this follower as ZooKeeper 3.5 does from now on, or no longer, as in an ensemble
    /// that is being upgraded; see [`Server::set_3_5`](crate::Server::set_3_5).
    pub fn set_3_5(&self, is_old: bool) {
        self.hub.lock().members.set_old(self.member, is_old);
    }

    /// Sets the time by which it is behind its leader from now on; zero for not at all, which is the default.
    ///
    /// A follower that lags answers `exists`, `getData`, `getChildren` and `multiRead` from the tree as it
    /// was so long ago. Where the watched node has changed since then, the follower catches up right after
    /// the answer, and the watch tells of that; one that stays tells of each change. The client knows of
    /// something newer when its handshake, a reply or a watch on this link said so: then it is shown that. So
    /// a read after a `sync`, or after a write of its own, shows the tree as it was when that was answered,
    /// and a client that comes with a new link may not find a node that was created before it lost the old
    /// one. The header of such a reply, and of one to a ping, carries the transaction that is shown.
    ///
    /// While a follower lags the server copies its tree before each write, and keeps the copies, and what it
    /// told of each write, for that time: meant for small trees. A follower that is [cut off](Self::cut_off)
    /// shows nothing older than that moment.
    pub fn set_lag(&self, lag: Duration) {
        self.hub.lock().set_lag_ms(self.member, millis(lag));
    }

    /// Closes its links. Their sessions live on, and clients may come back at once.
    pub fn drop_links(&self) {
        self.hub.lock().cut_links_of(self.member);
    }

    /// Number of its links.
    pub fn connection_count(&self) -> usize {
        self.hub.lock().links.of_member(self.member).len()
    }

    /// Closes its listener and its links, and waits until it does not listen any more.
    ///
    /// # Cancel safety
    /// This method is cancel safe: the follower stops in any case.
    pub async fn stop(mut self) {
        self.stop.cancel();
        // A task that was aborted with its runtime has stopped too.
        let _ = (&mut self.task).await;
    }
}

// It holds other people's data, as the server does.
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
