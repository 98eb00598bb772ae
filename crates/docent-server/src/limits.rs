use std::time::Duration;

/// Bytes of memory per node besides its contents: its entries in the tree and at its parent, with room to
/// grow.
pub(crate) const NODE: usize = 1 << 10;

/// Bytes of memory per session besides its identities and ephemeral nodes.
const SESSION: usize = 1 << 10;

/// Bytes of memory per link besides its queued data: its task, its socket, a buffer for each direction, and
/// the small replies that are queued after a large one.
const LINK: usize = 80 << 10;

/// Bytes of the length prefix of a frame.
pub(crate) const FRAME_LENGTH: usize = 4;

/// Limits on the resources that clients may use, so that no client can exhaust the memory of the process.
/// [`memory`](Self::memory) returns the maximum memory of a server with these limits.
///
/// A request that exceeds a limit fails with [`Code::QUOTA_EXCEEDED`](docent_proto::Code::QUOTA_EXCEEDED) and
/// changes nothing, unless the field says otherwise. Each refusal is logged as a warning with the name of the
/// limit, its value and the requested value: at most once per second for each link, and 100 times per second
/// for all links.
///
/// The defaults are generous, for development on one machine.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Maximum size of a request in bytes; default 1 MiB − 1, which is ZooKeeper's `jute.maxbuffer`. A larger
    /// request closes the link.
    pub frame_bytes: usize,
    /// Maximum size of a reply in bytes; default 64 MiB. The effective limit never exceeds 1 GiB, nor half of
    /// the bytes that may be queued in one link or in all links. Each name counts 32 bytes besides its
    /// length, and each result of a multi-read 81 bytes. A larger reply is refused; the answer to a
    /// four-letter word is truncated.
    pub reply_bytes: usize,
    /// Maximum number of open links; default 10,000. A further link replaces the oldest link without a
    /// session. If every link has a session, the further link is closed.
    pub connections: usize,
    /// Maximum number of live sessions; default 10,000. A link that requests a further session is closed.
    pub sessions: usize,
    /// Maximum number of nodes, not counting the root and those below `/zookeeper`; default 1,000,000.
    /// Further nodes are refused.
    pub nodes: usize,
    /// Maximum bytes of all nodes; default 512 MiB. It covers the data, access control lists other than the
    /// open one, and three times the path, which is stored in three places. Writes that would exceed it are
    /// refused.
    pub total_bytes: usize,
    /// Maximum bytes of an access control list; default 64 KiB. Each entry counts 128 bytes besides its
    /// scheme and id. A larger list is refused.
    pub acl_bytes: usize,
    /// Maximum bytes of the identities of one link; default 16 KiB. Each identity counts 128 bytes besides
    /// its scheme and id. Credentials that exceed the limit fail, which closes the link.
    pub auth_bytes_per_connection: usize,
    /// Maximum number of watches of one link, where a persistent watch counts twice; default 100,000. Further
    /// watches are refused.
    pub watches_per_connection: usize,
    /// Maximum bytes of the watches of one link; default 128 MiB. Each watch counts 640 bytes and twice its
    /// path. Watches that would exceed the limit are refused.
    pub watch_bytes_per_connection: usize,
    /// Maximum bytes of the watches of all links, counted in the same way; default 512 MiB.
    pub watch_bytes: usize,
    /// Maximum number of requests of one link that are unanswered, or whose replies are not written yet;
    /// default 10,000. At the limit, the server stops reading from the link until its client has read
    /// replies.
    pub requests_per_connection: usize,
    /// Maximum bytes queued in one link; default 128 MiB. It covers replies and events that the client has
    /// not read, and the request that is being received. A link that exceeds it is closed. Only events can
    /// reach this limit: once 256 KiB, or one larger reply, are queued, the server answers no further request
    /// until the client has read.
    pub queued_bytes_per_connection: usize,
    /// Maximum bytes queued in all links; default 512 MiB. It covers the same data as
    /// `queued_bytes_per_connection`.
    ///
    /// Replies may use half of the bytes, and requests that are being received a quarter. Beyond that, no
    /// link is closed: requests wait for their turn, except those whose reply has at most 16 KiB. Events may
    /// use a quarter. Because events cannot wait, the link with the most event bytes is closed beyond that.
    ///
    /// While requests wait, a link whose client has read nothing for a minute is closed.
    pub queued_bytes: usize,
    /// Maximum number of watch events of one transaction; default 1,000,000. Links that would need further
    /// events are closed.
    pub events_per_transaction: usize,
    /// Maximum bytes of the messages held by all followers that are cut off; default 64 MiB. Each message
    /// counts 512 bytes besides its length. A link that sends a further message is closed.
    pub held_bytes: usize,
    /// Maximum bytes of the past trees that are kept for lagging followers, and of the changes between them;
    /// default 512 MiB. In a tree, each node counts 1 KiB besides its bytes. A change counts 128 bytes
    /// besides its path and access control list. Beyond the limit the oldest trees are dropped, so the
    /// followers lag less.
    pub past_bytes: usize,
    /// Maximum bytes of the journal, if one is kept; default 1 GiB. Each entry counts 384 bytes besides its
    /// path and data. Writes and new sessions are refused once the remaining room is needed to record the end
    /// of all existing sessions and nodes.
    pub journal_bytes: usize,
    /// Time in which a new link must open or resume a session; default 10 s. The link is closed after that
    /// time.
    pub handshake: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            frame_bytes: 0xf_ffff,
            reply_bytes: 64 << 20,
            connections: 10_000,
            sessions: 10_000,
            nodes: 1_000_000,
            total_bytes: 512 << 20,
            acl_bytes: 64 << 10,
            auth_bytes_per_connection: 16 << 10,
            watches_per_connection: 100_000,
            watch_bytes_per_connection: 128 << 20,
            watch_bytes: 512 << 20,
            requests_per_connection: 10_000,
            queued_bytes_per_connection: 128 << 20,
            queued_bytes: 512 << 20,
            events_per_transaction: 1_000_000,
            held_bytes: 64 << 20,
            past_bytes: 512 << 20,
            journal_bytes: 1 << 30,
            handshake: Duration::from_secs(10),
        }
    }
}

impl Limits {
    /// Returns the maximum memory in bytes of a server with these limits, whatever its clients do. Memory
    /// lost to fragmentation in the allocator is not included. The result is the sum of:
    /// - 1 KiB for each node and session, and the bytes of all watches;
    /// - twice the bytes of all nodes, because the end of a session creates events with their paths;
    /// - 80 KiB and the bytes of its identities for each link, and twice the bytes queued in all links;
    /// - for the one request that is being processed, 32 times the maximum request, four times the maximum
    ///   reply, and 128 bytes for each event of a transaction;
    /// - the bytes of past trees, twice those of held messages, and the bytes of the journal.
    ///
    /// The last item applies only with followers and a [journal](crate::Builder::journal). Three cases need
    /// further memory. A follower that is cut off has another copy of nodes, sessions and watches. A link
    /// whose transport has a fault needs 2 MiB. A server that starts from a [kept](crate::Builder::keep)
    /// state holds the whole file.
    ///
    /// ```
    /// use docent_server::Limits;
    ///
    /// let defaults = Limits::default();
    /// assert_eq!(defaults.memory() >> 20, 6_557);
    /// let small = defaults.nodes(10_000).total_bytes(16 << 20).connections(100).queued_bytes(64 << 20);
    /// assert!(small.memory() < 4 << 30);
    /// ```
    pub fn memory(&self) -> u64 {
        let parts = [
            (self.nodes, NODE),
            (self.sessions, SESSION),
            (self.total_bytes, 2),
            (self.watch_bytes, 1),
            (self.connections, LINK),
            (self.connections, self.auth_bytes_per_connection),
            (self.queued_bytes, 2),
            (self.past_bytes, 1),
            (self.journal_bytes, 1),
            (self.held_bytes, 2),
            (self.frame_bytes, 32),
            (self.reply_bytes, 4),
            (self.events_per_transaction, 128),
        ];
        let wide = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        let bytes = parts.map(|(count, each)| wide(count).saturating_mul(wide(each)));
        bytes.into_iter().fold(0, u64::saturating_add)
    }

    /// Returns the effective maximum reply size in bytes. It is limited by the wire format, and by the
    /// queues, which must have room for a second reply.
    pub(crate) fn longest_reply(&self) -> usize {
        let may_wait = self.queued_replies().min(self.queued_bytes_per_connection / 2);
        self.reply_bytes.min(1 << 30).min(may_wait)
    }

    /// Returns the effective maximum request size in bytes. A request that could never be received as a whole
    /// is refused.
    pub(crate) fn longest_request(&self) -> usize {
        self.frame_bytes.min(self.queued_requests().saturating_sub(FRAME_LENGTH))
    }

    /// Returns the maximum bytes of replies queued in all links.
    pub(crate) fn queued_replies(&self) -> usize {
        self.queued_bytes / 2
    }

    /// Returns the maximum bytes of requests that are being received on all links.
    pub(crate) fn queued_requests(&self) -> usize {
        self.queued_bytes / 4
    }

    /// Returns the maximum bytes of events queued in all links.
    pub(crate) fn queued_events(&self) -> usize {
        self.queued_bytes / 4
    }

    /// Sets the maximum size of a request in bytes.
    #[must_use]
    pub fn frame_bytes(mut self, bytes: usize) -> Self {
        self.frame_bytes = bytes;
        self
    }

    /// Sets the maximum size of a reply in bytes.
    #[must_use]
    pub fn reply_bytes(mut self, bytes: usize) -> Self {
        self.reply_bytes = bytes;
        self
    }

    /// Sets the maximum number of open links.
    #[must_use]
    pub fn connections(mut self, count: usize) -> Self {
        self.connections = count;
        self
    }

    /// Sets the maximum number of live sessions.
    #[must_use]
    pub fn sessions(mut self, count: usize) -> Self {
        self.sessions = count;
        self
    }

    /// Sets the maximum number of nodes.
    #[must_use]
    pub fn nodes(mut self, count: usize) -> Self {
        self.nodes = count;
        self
    }

    /// Sets the maximum bytes of all nodes.
    #[must_use]
    pub fn total_bytes(mut self, bytes: usize) -> Self {
        self.total_bytes = bytes;
        self
    }

    /// Sets the maximum bytes of an access control list.
    #[must_use]
    pub fn acl_bytes(mut self, bytes: usize) -> Self {
        self.acl_bytes = bytes;
        self
    }

    /// Sets the maximum bytes of the identities of one link.
    #[must_use]
    pub fn auth_bytes_per_connection(mut self, bytes: usize) -> Self {
        self.auth_bytes_per_connection = bytes;
        self
    }

    /// Sets the maximum number of watches of one link.
    #[must_use]
    pub fn watches_per_connection(mut self, count: usize) -> Self {
        self.watches_per_connection = count;
        self
    }

    /// Sets the maximum bytes of the watches of one link.
    #[must_use]
    pub fn watch_bytes_per_connection(mut self, bytes: usize) -> Self {
        self.watch_bytes_per_connection = bytes;
        self
    }

    /// Sets the maximum bytes of the watches of all links.
    #[must_use]
    pub fn watch_bytes(mut self, bytes: usize) -> Self {
        self.watch_bytes = bytes;
        self
    }

    /// Sets the maximum number of unanswered requests of one link.
    #[must_use]
    pub fn requests_per_connection(mut self, count: usize) -> Self {
        self.requests_per_connection = count;
        self
    }

    /// Sets the maximum bytes queued in one link.
    #[must_use]
    pub fn queued_bytes_per_connection(mut self, bytes: usize) -> Self {
        self.queued_bytes_per_connection = bytes;
        self
    }

    /// Sets the maximum bytes queued in all links.
    #[must_use]
    pub fn queued_bytes(mut self, bytes: usize) -> Self {
        self.queued_bytes = bytes;
        self
    }

    /// Sets the maximum number of watch events of one transaction.
    #[must_use]
    pub fn events_per_transaction(mut self, count: usize) -> Self {
        self.events_per_transaction = count;
        self
    }

    /// Sets the maximum bytes of messages held by followers that are cut off.
    #[must_use]
    pub fn held_bytes(mut self, bytes: usize) -> Self {
        self.held_bytes = bytes;
        self
    }

    /// Sets the maximum bytes of past trees and the changes between them.
    #[must_use]
    pub fn past_bytes(mut self, bytes: usize) -> Self {
        self.past_bytes = bytes;
        self
    }

    /// Sets the maximum bytes of the journal.
    #[must_use]
    pub fn journal_bytes(mut self, bytes: usize) -> Self {
        self.journal_bytes = bytes;
        self
    }

    /// Sets the time in which a new link must open or resume a session.
    #[must_use]
    pub fn handshake(mut self, time: Duration) -> Self {
        self.handshake = time;
        self
    }
}
