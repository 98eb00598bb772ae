use std::time::Duration;

/// Limits of the resources that clients may ask of a server. Each limit is there so that no client can
/// exhaust the process's memory.
///
/// Beyond a limit: a frame that is too long, a link or a session too many close the link without an answer,
/// as a ZooKeeper server does; everything else is answered with
/// [`Code::QUOTA_EXCEEDED`](docent_proto::Code::QUOTA_EXCEEDED) and changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Longest request in bytes; default 1 MiB − 1, which is ZooKeeper's `jute.maxbuffer`.
    pub frame_bytes: usize,
    /// Longest reply of a multi-read in bytes, counting data and names; default 64 MiB.
    pub reply_bytes: usize,
    /// Links that are open at the same time; default 10,000.
    pub connections: usize,
    /// Sessions that live at the same time; default 10,000.
    pub sessions: usize,
    /// Nodes, without the root and those below `/zookeeper`; default 1,000,000.
    pub nodes: usize,
    /// Bytes of all nodes' paths and data together; default 512 MiB.
    pub total_bytes: usize,
    /// Watches of one link; default 100,000.
    pub watches_per_connection: usize,
    /// Time a new link has to open or attach to its session; default 10 s.
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
            watches_per_connection: 100_000,
            handshake: Duration::from_secs(10),
        }
    }
}

impl Limits {
    /// Sets the longest request in bytes.
    #[must_use]
    pub fn frame_bytes(mut self, bytes: usize) -> Self {
        self.frame_bytes = bytes;
        self
    }

    /// Sets the longest reply of a multi-read in bytes.
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

    /// Sets how many bytes all paths and data may take up together.
    #[must_use]
    pub fn total_bytes(mut self, bytes: usize) -> Self {
        self.total_bytes = bytes;
        self
    }

    /// Sets how many watches one link may have.
    #[must_use]
    pub fn watches_per_connection(mut self, count: usize) -> Self {
        self.watches_per_connection = count;
        self
    }

    /// Sets how long a new link has to open or attach to its session.
    #[must_use]
    pub fn handshake(mut self, time: Duration) -> Self {
        self.handshake = time;
        self
    }
}
