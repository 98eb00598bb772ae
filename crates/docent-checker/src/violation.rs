use crate::event::{AttemptId, ClientId};
use std::fmt;
use std::time::Duration;

/// Invariants of every run. Each has a file below `check/` that describes and checks it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Invariant {
    /// The record and the journal contain no contradictions: `record`.
    Record,
    /// Fenced exclusion: `fenced`.
    M1,
    /// Exclusion in the order of transactions: `exclusion`.
    M2,
    /// Exclusion in real time: `real_time`.
    M3,
    /// Fences increase: `fences`.
    M4,
    /// First come, first served: `order`.
    M5,
    /// No orphan: `orphans`.
    M6,
    /// No herd: `herd`.
    M7,
    /// Liveness: `liveness`.
    M8,
    /// Release: `release`.
    M9,
    /// Reentrancy: `reentry`.
    M10,
    /// Loss: `loss`.
    M11,
    /// Patience: `patience`.
    M12,
    /// A writer excludes readers: `writer`.
    R1,
    /// Readers do not hold back readers: `readers`.
    R2,
    /// Writers are not starved: `starvation`.
    R3,
    /// A writer that downgrades keeps its place: `downgrade`.
    R4,
    /// Wake-ups of readers and writers: `wake_ups`.
    R5,
    /// Fences of readers: `reader_fences`.
    R6,
    /// One leader: `one_leader`.
    E1,
    /// Work is bound to its term: `work`.
    E4,
    /// Succession: `succession`.
    E5,
    /// No candidate drops out silently: `enrolled`.
    E6,
    /// A leader notices that its node was deleted: `deleted_leader`.
    E7,
    /// Stability: `stability`.
    E8,
    /// Takeover delay: `takeover`.
    E9,
    /// Observers: `observers`.
    O1,
    /// Permits: `permits`.
    S1,
    /// Resources that are held together: `together`.
    G1,
    /// Entering a double barrier: `barrier_enter`.
    B1,
    /// Leaving a double barrier: `barrier_leave`.
    B2,
    /// Barriers: `barrier`.
    B3,
    /// No item is lost: `items`.
    Q1,
    /// Puts: `puts`.
    Q2,
    /// The order of items: `item_order`.
    Q3,
    /// Counts of deliveries: `delivery_counts`.
    Q4,
    /// Acknowledgements: `acks`.
    Q5,
    /// Claims: `claims`.
    Q6,
    /// Dead letters: `dead_letters`.
    Q7,
    /// Free items are noticed: `noticed`.
    Q8,
    /// Claims and places are given up: `given_up`.
    Q9,
    /// No claim without an item, and one proof at a time: `claimed_items`.
    Q10,
    /// No write under a delivery after the next hand-out of its item: `delivery_writes`.
    Q11,
    /// Strict order: `in_order`.
    Q12,
    /// Views of a folder: `views`.
    D1,
    /// Members that never left are shown: `removals`.
    D2,
    /// No client deletes another client's node: `ownership`.
    D3,
    /// Announced nodes exist, and those of members that left do not: `announced`.
    D4,
    /// Values do not revert: `values`.
    C1,
    /// The last value arrives: `latest`.
    C2,
    /// Published exactly once: `once`.
    C3,
    /// No unseen value is overwritten: `seen`.
    C4,
    /// Counted exactly: `counters`.
    C5,
    /// Watches report each change once: `watch_events`.
    W1,
    /// Replies about nodes, sessions and watches: `answers`.
    W2,
    /// Connection state: `connection`.
    K1,
    /// Deadlines: `deadlines`.
    K2,
    /// Nothing is left behind: `leftovers`.
    K5,
    /// Close: `close`.
    K7,
}

/// A violation of an invariant in a run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Violation {
    /// The violated invariant.
    pub invariant: Invariant,
    /// Time since the run began.
    pub at: Duration,
    /// Description of the violation, as a sentence.
    pub what: String,
    /// The attempts concerned.
    pub attempts: Vec<AttemptId>,
    /// The clients concerned.
    pub clients: Vec<ClientId>,
    /// The paths concerned, as the server knows them.
    pub paths: Vec<String>,
}

/// Violations that the check of an invariant found.
pub(crate) type Found = Vec<Violation>;

impl Violation {
    pub(crate) fn new(invariant: Invariant, at: Duration, what: impl Into<String>) -> Self {
        let what = what.into();
        Self { invariant, at, what, attempts: Vec::new(), clients: Vec::new(), paths: Vec::new() }
    }

    pub(crate) fn client(mut self, client: ClientId) -> Self {
        if !self.clients.contains(&client) {
            self.clients.push(client);
        }
        self
    }

    pub(crate) fn path(mut self, path: impl Into<String>) -> Self {
        let path = path.into();
        if !self.paths.contains(&path) {
            self.paths.push(path);
        }
        self
    }

    pub(crate) fn attempt(mut self, attempt: AttemptId) -> Self {
        self.attempts.push(attempt);
        self
    }
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:.4}: {}", self.invariant, self.at.as_secs_f64(), self.what)?;
        for attempt in &self.attempts {
            write!(f, " {attempt}")?;
        }
        for client in &self.clients {
            write!(f, " {client}")?;
        }
        self.paths.iter().try_for_each(|path| write!(f, " {path}"))
    }
}
