use crate::event::{AttemptId, ClientId};
use std::fmt;
use std::time::Duration;

/// Invariants of every run, each with the file below `check/` that says and checks it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Invariant {
    /// The record and the journal do not contradict themselves: `record`.
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
    /// Readers are not held back by readers: `readers`.
    R2,
    /// Writers are not starved: `starvation`.
    R3,
    /// A writer that steps down keeps its place: `step_down`.
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
    /// Nobody is silently out: `enrolled`.
    E6,
    /// A leader whose node is deleted: `deleted_leader`.
    E7,
    /// Stability: `stability`.
    E8,
    /// Takeover delay: `takeover`.
    E9,
    /// Onlookers: `onlookers`.
    O1,
    /// Permits: `permits`.
    S1,
    /// Things that go together: `together`.
    G1,
    /// The way into a double barrier: `barrier_enter`.
    B1,
    /// The way out of a double barrier: `barrier_leave`.
    B2,
    /// The barrier: `barrier`.
    B3,
    /// Items are kept: `items`.
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
    /// A free item is noticed: `noticed`.
    Q8,
    /// Claims and places are given up: `given_up`.
    Q9,
    /// No claim without an item, and one proof at a time: `claimed_items`.
    Q10,
    /// Nothing is written under a delivery once the next one was handed out: `delivery_writes`.
    Q11,
    /// Strict order: `in_order`.
    Q12,
    /// Views of a folder: `views`.
    D1,
    /// Members that never left are shown: `removals`.
    D2,
    /// Nobody's node is taken away: `ownership`.
    D3,
    /// Announced nodes are there, and those of members that left are not: `announced`.
    D4,
    /// Values do not go back: `values`.
    C1,
    /// The last value arrives: `latest`.
    C2,
    /// Published exactly once: `once`.
    C3,
    /// Nothing unseen is overwritten: `seen`.
    C4,
    /// Counted exactly: `counters`.
    C5,
    /// Watches tell each change once: `told`.
    W1,
    /// Answers about nodes, sessions and watches: `answers`.
    W2,
    /// Connection state: `connection`.
    K1,
    /// Deadlines: `deadlines`.
    K2,
    /// Nothing is left over: `leftovers`.
    K5,
    /// Close: `close`.
    K7,
}

/// Violation of an invariant in a run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Violation {
    /// The invariant that it breaks.
    pub invariant: Invariant,
    /// Time since the run began.
    pub at: Duration,
    /// The violation as a sentence.
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
