use std::time::Duration;

/// Memory of a node without its bytes: its place in the tree and at its parent, with room for both to grow.
pub(crate) const NODE: usize = 1 << 10;

/// Memory of a session without its identities and ephemeral nodes.
const SESSION: usize = 1 << 10;

/// Memory of a link without what waits in it: its task, its socket, a buffer for each direction, and the
/// small replies that wait behind a large one.
const LINK: usize = 80 << 10;

/// Bytes in front of a frame that hold its length.
pub(crate) const FRAME_LENGTH: usize = 4;

/// Limits of the resources that clients may ask of a server. They are there so that no client can exhaust
/// the process's memory: [`memory`](Self::memory) says how much a server with these limits holds at most.
///
/// Beyond a limit a request is answered with [`Code::QUOTA_EXCEEDED`](docent_proto::Code::QUOTA_EXCEEDED) and
/// changes nothing, unless the field says otherwise. Each refusal is logged as a warning with the name of the
/// limit, its value and the value that was asked for: once a second for one link, and a hundred times for all
/// of them.
///
/// The defaults are generous, for development on one machine.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Longest request in bytes; default 1 MiB − 1, which is ZooKeeper's `jute.maxbuffer`. A longer one
    /// closes the link.
    pub frame_bytes: usize,
    /// Longest reply in bytes; default 64 MiB, never more than 1 GiB or half of what may wait in one link or
    /// in all of them. Each name counts 32 bytes besides its length, and each result of a multi-read 81. A
    /// longer one is refused, and the answer to a four-letter word cut off.
    pub reply_bytes: usize,
    /// Links that are open at the same time; default 10,000. One more is closed, unless there is one without
    /// a session: the oldest of those makes room.
    pub connections: usize,
    /// Sessions that live at the same time; default 10,000. The link that asks for one more is closed.
    pub sessions: usize,
    /// Nodes, without the root and those below `/zookeeper`; default 1,000,000. One more is refused.
    pub nodes: usize,
    /// Bytes of all nodes together: data, access control lists other than the open one, and three times the
    /// path, which is kept in so many places; default 512 MiB. Writes that need more are refused.
    pub total_bytes: usize,
    /// Bytes of one access control list, where each entry counts 128 besides its scheme and id; default 64
    /// KiB. A longer one is refused.
    pub acl_bytes: usize,
    /// Bytes of the identities of one link, each of which counts 128 besides its scheme and id; default 16
    /// KiB. Credentials beyond that fail, which closes the link.
    pub auth_bytes_per_connection: usize,
    /// Watches of one link, where one that stays counts twice; default 100,000. One more is refused.
    pub watches_per_connection: usize,
    /// Bytes of the watches of one link, each of which counts 640 and twice its path; default 128 MiB.
    /// Watches that need more are refused.
    pub watch_bytes_per_connection: usize,
    /// Bytes of the watches of all links, counted likewise; default 512 MiB.
    pub watch_bytes: usize,
    /// Requests of one link that are not answered yet, or whose answers are not written; default 10,000.
    /// Beyond that nothing more is read from the link until its client has read.
    pub requests_per_connection: usize,
    /// Bytes of replies and events that wait until the client of one link reads, and of the request that is
    /// coming in; default 128 MiB. Beyond that the link is closed. Only events reach this limit: once 256 KiB
    /// wait, or one longer reply, nothing more is answered before the client has read.
    pub queued_bytes_per_connection: usize,
    /// The same bytes of all links together; default 512 MiB.
    ///
    /// Replies may use half of them, and requests that are coming in a quarter. Beyond that no link is
    /// closed: requests wait for their turn, except those whose reply has at most 16 KiB. Events may use a
    /// quarter. They cannot wait, so beyond that the link with most of them is closed.
    ///
    /// While requests wait, a link whose client has read nothing for a minute is closed.
    pub queued_bytes: usize,
    /// Watch events of one transaction; default 1,000,000. The links that more would have to be told are
    /// closed.
    pub events_per_transaction: usize,
    /// Bytes of the messages that wait in all followers that are cut off and hold them, each of which counts
    /// 512 besides its length; default 64 MiB. The link that sends one more is closed.
    pub held_bytes: usize,
    /// Bytes of the trees that are kept for followers that lag, where each node counts 1 KiB besides its
    /// bytes, and of the changes between them, each of which counts 128 besides its path and access control
    /// list; default 512 MiB. Beyond that the oldest are dropped: the followers lag less.
    pub past_bytes: usize,
    /// Bytes of the journal, if one is kept, where each entry counts 384 besides its path and data; default 1
    /// GiB. Writes and new sessions are refused while there is only room for the ends of all sessions and
    /// nodes that are there.
    pub journal_bytes: usize,
    /// Time a new link has to open or attach to its session; default 10 s. After that it is closed.
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
    /// Bytes of memory that a server with these limits holds at most, whatever its clients do, what the
    /// allocator cannot use between its pieces apart. It is the sum of:
    /// - 1 KiB for each node and session, twice the bytes of all nodes, whose paths are told when a session
    ///   ends, and the bytes of all watches;
    /// - 80 KiB and the bytes of its identities for each link, and twice the bytes that wait in all links;
    /// - for the one request that is worked on, 32 times the longest request, four times the longest reply,
    ///   and 128 bytes for each event of a transaction;
    /// - the bytes of the past, twice those of held messages, and the bytes of the journal.
    ///
    /// The last line is there only with followers and a [journal](crate::Builder::journal). A follower that
    /// is cut off has one more copy of nodes, sessions and watches, a link whose transport has a fault 2 MiB,
    /// and a server that starts with a [kept](crate::Builder::keep) state the whole file.
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

    /// The longest reply in bytes: what the wire can hold, and what may wait with room for another one.
    pub(crate) fn longest_reply(&self) -> usize {
        let may_wait = self.queued_replies().min(self.queued_bytes_per_connection / 2);
        self.reply_bytes.min(1 << 30).min(may_wait)
    }

    /// The longest request in bytes: one that could never be read as a whole is refused.
    pub(crate) fn longest_request(&self) -> usize {
        self.frame_bytes.min(self.queued_requests().saturating_sub(FRAME_LENGTH))
    }

    /// Bytes of the replies that wait in all links.
    pub(crate) fn queued_replies(&self) -> usize {
        self.queued_bytes / 2
    }

    /// Bytes of the requests that are coming in over all links.
    pub(crate) fn queued_requests(&self) -> usize {
        self.queued_bytes / 4
    }

    /// Bytes of the events that wait in all links.
    pub(crate) fn queued_events(&self) -> usize {
        self.queued_bytes / 4
    }

    /// Sets the longest request in bytes.
    #[must_use]
    pub fn frame_bytes(mut self, bytes: usize) -> Self {
        self.frame_bytes = bytes;
        self
    }

    /// Sets the longest reply in bytes.
    #[must_use]
    pub fn reply_bytes(mut self, bytes: usize) -> Self {
        self.reply_bytes = bytes;
        self
    }

    /// Sets how many links may be open at the same time.
    #[must_use]
    pub fn connections(mut self, count: usize) -> Self {
        self.connections = count;
        self
    }

    /// Sets how many sessions may live at the same time.
    #[must_use]
    pub fn sessions(mut self, count: usize) -> Self {
        self.sessions = count;
        self
    }

    /// Sets how many nodes there may be.
    #[must_use]
    pub fn nodes(mut self, count: usize) -> Self {
        self.nodes = count;
        self
    }

    /// Sets how many bytes all nodes may take up together.
    #[must_use]
    pub fn total_bytes(mut self, bytes: usize) -> Self {
        self.total_bytes = bytes;
        self
    }

    /// Sets how many bytes an access control list may take up.
    #[must_use]
    pub fn acl_bytes(mut self, bytes: usize) -> Self {
        self.acl_bytes = bytes;
        self
    }

    /// Sets how many bytes the identities of one link may take up.
    #[must_use]
    pub fn auth_bytes_per_connection(mut self, bytes: usize) -> Self {
        self.auth_bytes_per_connection = bytes;
        self
    }

    /// Sets how many watches one link may have.
    #[must_use]
    pub fn watches_per_connection(mut self, count: usize) -> Self {
        self.watches_per_connection = count;
        self
    }

    /// Sets how many bytes the watches of one link may take up.
    #[must_use]
    pub fn watch_bytes_per_connection(mut self, bytes: usize) -> Self {
        self.watch_bytes_per_connection = bytes;
        self
    }

    /// Sets how many bytes the watches of all links may take up.
    #[must_use]
    pub fn watch_bytes(mut self, bytes: usize) -> Self {
        self.watch_bytes = bytes;
        self
    }

    /// Sets how many requests of one link may be under way.
    #[must_use]
    pub fn requests_per_connection(mut self, count: usize) -> Self {
        self.requests_per_connection = count;
        self
    }

    /// Sets how many bytes may wait in one link.
    #[must_use]
    pub fn queued_bytes_per_connection(mut self, bytes: usize) -> Self {
        self.queued_bytes_per_connection = bytes;
        self
    }

    /// Sets how many bytes may wait in all links together.
    #[must_use]
    pub fn queued_bytes(mut self, bytes: usize) -> Self {
        self.queued_bytes = bytes;
        self
    }

    /// Sets how many events a transaction may have.
    #[must_use]
    pub fn events_per_transaction(mut self, count: usize) -> Self {
        self.events_per_transaction = count;
        self
    }

    /// Sets how many bytes may wait in followers that are cut off.
    #[must_use]
    pub fn held_bytes(mut self, bytes: usize) -> Self {
        self.held_bytes = bytes;
        self
    }

    /// Sets how many bytes the trees of the past may take up, with the changes between them.
    #[must_use]
    pub fn past_bytes(mut self, bytes: usize) -> Self {
        self.past_bytes = bytes;
        self
    }

    /// Sets how many bytes the journal may take up.
    #[must_use]
    pub fn journal_bytes(mut self, bytes: usize) -> Self {
        self.journal_bytes = bytes;
        self
    }

    /// Sets how long a new link has to open or attach to its session.
    #[must_use]
    pub fn handshake(mut self, time: Duration) -> Self {
        self.handshake = time;
        self
    }
}
