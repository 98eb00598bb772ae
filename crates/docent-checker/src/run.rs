use crate::event::{ClientId, Event};
use crate::journal::Change;
use crate::watcher::WatcherLink;
use docent_server::{Transaction, TransactionKind};
use std::collections::BTreeMap;
use std::time::Duration;

/// Run that is over: the clients' record, the server's journal, and facts besides.
#[derive(Debug, Clone, Default)]
pub struct Run {
    /// Events at the clients and of the world, in the order in which they were recorded.
    pub events: Vec<Event>,
    /// Changes that the server committed, in its order, on the same clock as the events: see [`Change::of`].
    pub journal: Vec<Change>,
    /// Facts that neither of them tells.
    pub facts: Facts,
}

/// Facts about a run besides its record and journal.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Facts {
    /// The server's tick.
    pub tick: Duration,
    /// The longest session timeout that the server granted.
    pub timeout: Duration,
    /// The shortest.
    pub shortest_timeout: Duration,
    /// Clients by their sessions, besides those that the record names. Of nodes whose owner is not known
    /// little is asked.
    pub sessions: BTreeMap<i64, ClientId>,
    /// Limits of permits, each at its path from a transaction on, in the order of transactions. Nothing is
    /// asked of permits at other paths.
    pub limits: Vec<Limit>,
    /// Terms that were written into elections' own nodes, in the order of transactions.
    pub noted: Vec<Noted>,
    /// Items in the nodes of queues, in the order of transactions.
    pub queued: Vec<Queued>,
    /// The queues by their paths, each with its settings.
    pub queues: BTreeMap<String, QueueRules>,
    /// Writes into nodes whose data is asked for, in the order of transactions.
    pub written: Vec<Written>,
    /// Links of clients that watch by bare requests, in the order in which they were made.
    pub watchers: Vec<WatcherLink>,
    /// State of the server at the end.
    pub end: EndState,
    /// Exactness of the record, and delays that are allowed.
    pub tolerances: Tolerances,
}

/// Number of permits at a path, from a transaction on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit {
    /// The path of the permits' nodes, as the server knows it.
    pub path: String,
    /// The transaction.
    pub zxid: i64,
    /// Number of permits.
    pub permits: u32,
}

/// Content of an election's own node, from a transaction on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Noted {
    /// The election's path, as the server knows it.
    pub path: String,
    /// The transaction.
    pub zxid: i64,
    /// The fence of the term that began and was not resigned from; `None` when there is none.
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
    /// The queue's path, as the server knows it.
    pub queue: String,
    /// The node's.
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
        /// Consumers that can decode it.
        decodable: Decodable,
    },
    /// A dead letter.
    DeadLetter {
        /// Reason for which it is one.
        reason: DeadReason,
    },
}

/// Consumers that can decode an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decodable {
    /// All of them.
    All,
    /// Those of the newer version.
    Newer,
    /// None of them.
    Nobody,
}

/// Reason for which an item is a dead letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeadReason {
    /// It was handed out as often as is allowed.
    TooManyDeliveries,
    /// It could not be decoded.
    Undecodable,
    /// A consumer rejected it.
    Rejected,
}

/// Write of a transaction into a node whose data is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The node's path, as the server knows it.
    pub path: String,
    /// The transaction.
    pub zxid: i64,
    /// The number that stands for the data; `None` for data that nobody can read.
    pub number: Option<u64>,
}

/// State of the server at the end of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EndState {
    /// Time of the look, since the run began. Zero when nobody looked: then nothing that was still due counts
    /// as late.
    pub at: Duration,
    /// The paths of all nodes.
    pub nodes: Vec<String>,
    /// The sessions, with the number of watches of each.
    pub sessions: BTreeMap<i64, usize>,
    /// Number of watches in all.
    pub watches: usize,
}

/// Exactness of a record, and delays that are allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tolerances {
    /// Most that the time of a record and that of the journal can be apart for the same moment.
    pub grain: Duration,
    /// The longest round trip while a link is well.
    pub round_trip: Duration,
    /// The longest time from a change to the client that watches it, while its link is well.
    pub news: Duration,
    /// The longest time from a deadline, or the end of a freeze, to the record of the next event.
    pub scheduling: Duration,
    /// The longest time in which a client that is connected deletes a node that nobody needs.
    pub cleanup: Duration,
    /// The longest time in which a client finds a server again once there is one.
    pub reconnect: Duration,
    /// Most that a server may be behind the others.
    pub lag: Duration,
    /// Least time before the server ends a session at which its holders have to know.
    pub head_start: Duration,
    /// Time that an operation tries before it gives up.
    pub operation: Duration,
    /// Number of waiters that one deletion may wake: 1, and 2 where the one after the next prepares.
    pub woken: usize,
}

impl Facts {
    /// Facts of a world with this tick and this session timeout.
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

    /// With the longest and the shortest timeout that a server's journal tells of.
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

    /// The part of the shortest timeout that a lease leaves unused, and in which the work of a lost guard may
    /// stop.
    pub(crate) fn margin(&self) -> Duration {
        let timeout = self.shortest_timeout;
        (timeout / 3).max(timeout / 6 + self.tick + Duration::from_millis(100))
    }

    /// The longest time from the last sign of a client to the end of its session.
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
    /// State at this time, with nothing seen yet.
    pub fn new(at: Duration) -> Self {
        Self { at, ..Self::default() }
    }
}

impl Default for Tolerances {
    fn default() -> Self {
        Self {
            grain: Duration::from_millis(2),
            round_trip: Duration::from_millis(20),
            news: Duration::from_secs(1),
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
