use std::collections::VecDeque;
use std::sync::Arc;

/// Number of nodes up to which they are read one by one; more are read several to a request.
pub(super) const FEW: usize = 64;

/// Maximum number of nodes that one request sets watches on.
pub(super) const ARMED_TOGETHER: usize = 512;

/// Kind of a read of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum ReadKind {
    Data,
    Names,
}

/// A request for nodes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Read {
    /// Reads one node, and leaves a watch if it has none yet.
    One { key: Arc<str>, kind: ReadKind, watch: bool },
    /// Reads the data of several nodes, and leaves no watches.
    Several(Vec<Arc<str>>),
    /// Reads nothing: sets watches on the data of several nodes, which were read as of `since` or later. The
    /// watch of a node that changed after that fires immediately.
    Watch { keys: Vec<Arc<str>>, since: i64 },
    /// Waits for the cache's own node to be created.
    Root,
}

/// State of one kind of read of a node.
#[derive(Debug, Default)]
pub(super) struct Slot {
    pub(super) stage: Stage,
    /// Set when the node changed while it was being read.
    pub(super) read_again: bool,
    /// Set while the sync waits for the read.
    pub(super) due: bool,
    /// Set once it was reported that the servers refuse the read.
    pub(super) refused: bool,
    pub(super) watched: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Stage {
    #[default]
    Resting,
    Queued,
    /// Known, but without a watch.
    Unwatched,
    InFlight,
}

impl Slot {
    /// The slot before any read is wanted.
    pub(super) fn at_rest(&self) -> Self {
        Self { refused: self.refused, watched: self.watched, ..Self::default() }
    }
}

/// Keys of nodes that wait for a read. Each queue may contain some that do not wait any more.
#[derive(Debug, Default)]
pub(super) struct Queues {
    pub(super) unlisted: VecDeque<Arc<str>>,
    pub(super) unread: VecDeque<Arc<str>>,
    pub(super) unwatched: VecDeque<Arc<str>>,
}

impl Queues {
    pub(super) fn push(&mut self, key: Arc<str>, kind: ReadKind) {
        match kind {
            ReadKind::Data => self.unread.push_back(key),
            ReadKind::Names => self.unlisted.push_back(key),
        }
    }
}
