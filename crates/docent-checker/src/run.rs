use crate::event::{ClientId, Event};
use crate::journal::Change;
use crate::watcher::WatcherLink;
use docent_server::{Transaction, TransactionKind};
use std::collections::BTreeMap;
use std::time::Duration;

/// A completed run: the clients' record, the server's journal, and other facts.
#[derive(Debug, Clone, Default)]
pub struct Run {
    /// Events at the clients and of the world, in the order in which they were recorded.
    pub events: Vec<Event>,
    /// Changes that the server committed, in its order, on the same clock as the events: see [`Change::of`].
    pub journal: Vec<Change>,
    /// Facts that neither the events nor the journal contain.
    pub facts: Facts,
}

/// Facts about a run that its record and journal do not contain.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Facts {
    /// The server's tick.
    pub tick: Duration,
    /// Longest session timeout that the server granted.
    pub timeout: Duration,
    /// Shortest session timeout that the server granted.
    pub shortest_timeout: Duration,
    /// The clients of sessions, in addition to those that the record contains. Few invariants apply to nodes
    /// whose owner is unknown.
    pub sessions: BTreeMap<i64, ClientId>,
    /// Limits of permits, each for a path and from a transaction on, in the order of transactions. Paths
    /// without a limit are not checked.
    pub limits: Vec<Limit>,
    /// Terms that were written into the elections' own nodes, in the order of transactions.
    pub noted: Vec<Noted>,
    /// Items in the nodes of queues, in the order of transactions.
    pub queued: Vec<Queued>,
    /// Settings of each queue, by its path.
    pub queues: BTreeMap<String, QueueRules>,
    /// Writes to nodes whose data is checked, in the order of transactions.
    pub written: Vec<Written>,
    /// Links of clients that watch with bare requests, in the order in which they were created.
    pub watchers: Vec<WatcherLink>,
    /// State of the server at the end.
    pub end: EndState,
    /// Precision of the record, and permitted delays.
    pub tolerances: Tolerances,
}

/// Number of permits at a path, from a transaction on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit {
    /// Path of the permits' nodes, as the server knows it.
    pub path: String,
    /// The transaction.
    pub zxid: i64,
    /// Number of permits.
    pub permits: u32,
}

/// Content of an election's own node, from a transaction on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Noted {
    /// Path of the election, as the server knows it.
    pub path: String,
    /// The transaction.
    pub zxid: i64,
    /// Fence of the term that began and was not resigned from; `None` if there is none.
    pub term: Option<u64>,
}

/// Settings of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueRules {
    /// Maximum number of times that an item is handed out.
    pub max_deliveries: u32,
    /// How long a consumer leaves an item that it cannot decode to others.
    pub undecodable_after: Duration,
    /// Whether one consumer at a time takes the first item, under a lock.
    pub ordered: bool,
}

/// An item of a queue in a node, from a transaction on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queued {
    /// Path of the queue, as the server knows it.
    pub queue: String,
    /// Path of the node, as the server knows it.
    pub node: String,
    /// The transaction.
    pub zxid: i64,
    /// The item.
    pub item: u64,
    /// Kind of the node.
    pub kind: QueuedAs,
}

/// Kind of a node of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum QueuedAs {
    /// An item.
    Item {
        /// Consumers that can decode the item.
        decodable: Decodable,
    },
    /// A dead letter.
    DeadLetter {
        /// Why the item became a dead letter.
        reason: DeadReason,
    },
}

/// The consumers that can decode an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decodable {
    /// All consumers.
    All,
    /// Consumers of the newer version.
    Newer,
    /// No consumer.
    NoClient,
}

/// Why an item became a dead letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeadReason {
    /// The item was handed out the maximum number of times.
    TooManyDeliveries,
    /// The item could not be decoded.
    Undecodable,
    /// A consumer rejected the item.
    Rejected,
}

/// A write to a node whose data is checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// Path of the node, as the server knows it.
    pub path: String,
    /// The transaction.
    pub zxid: i64,
    /// The number that represents the data; `None` for data that cannot be read.
    pub number: Option<u64>,
}

/// State of the server at the end of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EndState {
    /// Time since the run began at which the state was read. Zero if it was never read: then nothing that was
    /// still due counts as late.
    pub at: Duration,
    /// The paths of all nodes.
    pub nodes: Vec<String>,
    /// The open sessions, with the number of watches of each.
    pub sessions: BTreeMap<i64, usize>,
    /// Total number of watches.
    pub watches: usize,
}

/// Precision of a record, and permitted delays.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tolerances {
    /// Maximum difference between the time of the record and that of the journal for the same moment.
    pub grain: Duration,
    /// Longest round trip on a healthy link.
    pub round_trip: Duration,
    /// Longest time from a change to the notification of a client that watches it, on a healthy link.
    pub notification: Duration,
    /// Longest time from a deadline, or the end of a pause, to the record of the next event.
    pub scheduling: Duration,
    /// Longest time in which a connected client deletes a node that is no longer needed.
    pub cleanup: Duration,
    /// Longest time in which a client reconnects once a server is available.
    pub reconnect: Duration,
    /// Maximum time that a server may lag behind the others.
    pub lag: Duration,
    /// Minimum time before a session's expiry at which its holders must know of the loss.
    pub head_start: Duration,
    /// Time for which an operation retries before it fails.
    pub operation: Duration,
    /// Number of waiters that one deletion may wake: 1, or 2 if the waiter after the next one prepares for
    /// its turn.
    pub woken: usize,
}

impl Facts {
    /// Creates the facts of a world with this tick and this session timeout.
    pub fn new(tick: Duration, timeout: Duration) -> Self {
        Self {
            tick,
            timeout,
            shortest_timeout: timeout,
            sessions: BTreeMap::new(),
            limits: Vec::new(),
            noted: Vec::new(),
            queued: Vec::new(),
            queues: BTreeMap::new(),
            written: Vec::new(),
            watchers: Vec::new(),
            end: EndState::default(),
            tolerances: Tolerances::default(),
        }
    }

    /// Sets the longest and the shortest timeout from a server's journal.
    #[must_use]
    pub fn timeouts_of(mut self, journal: &[Transaction]) -> Self {
        let timeouts = || {
            journal.iter().filter_map(|transaction| match transaction.kind {
                TransactionKind::SessionOpened { timeout, .. }
                | TransactionKind::SessionEnded { timeout, .. } => Some(timeout),
                _ => None,
            })
        };
        self.timeout = timeouts().max().unwrap_or(self.timeout);
        self.shortest_timeout = timeouts().min().unwrap_or(self.shortest_timeout);
        self
    }

    /// The part of the shortest timeout that a lease leaves unused, in which the work of a lost guard may
    /// stop.
    pub(crate) fn margin(&self) -> Duration {
        let timeout = self.shortest_timeout;
        (timeout / 3).max(timeout / 6 + self.tick + Duration::from_millis(100))
    }

    /// Longest time from the last request of a client to the expiry of its session.
    pub(crate) fn expiry(&self) -> Duration {
        self.timeout + self.tick * 2
    }
}

impl Default for Facts {
    fn default() -> Self {
        Self::new(Duration::from_secs(2), Duration::from_secs(20))
    }
}

impl EndState {
    /// Creates the state at this time, still empty.
    pub fn new(at: Duration) -> Self {
        Self { at, ..Self::default() }
    }
}

impl Default for Tolerances {
    fn default() -> Self {
        Self {
            grain: Duration::from_millis(2),
            round_trip: Duration::from_millis(20),
            notification: Duration::from_secs(1),
            scheduling: Duration::from_millis(100),
            cleanup: Duration::from_secs(2),
            reconnect: Duration::from_secs(2),
            lag: Duration::ZERO,
            head_start: Duration::ZERO,
            operation: Duration::from_secs(15),
            woken: 2,
        }
    }
}
