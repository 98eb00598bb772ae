use crate::event::{AttemptId, ClientId};
use std::fmt;
use std::time::Duration;

/// Invariant that must hold in every run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Invariant {
    /// The record and the journal do not contradict themselves.
    Record,
    /// Fenced exclusion.
    M1,
    /// Exclusion in the order of transactions.
    M2,
    /// Exclusion in real time.
    M3,
    /// Fences increase.
    M4,
    /// First come, first served.
    M5,
    /// No orphan.
    M6,
    /// No herd.
    M7,
    /// Liveness.
    M8,
    /// Release.
    M9,
    /// Reentrancy.
    M10,
    /// Loss.
    M11,
    /// Patience.
    M12,
    /// A writer excludes readers.
    R1,
    /// Readers are not held back by readers.
    R2,
    /// Writers are not starved.
    R3,
    /// A writer that steps down keeps its place.
    R4,
    /// Wake-ups of readers and writers.
    R5,
    /// Fences of writers increase.
    R6,
    /// One leader.
    E1,
    /// Terms increase.
    E2,
    /// Terms of a candidate follow each other.
    E3,
    /// Work is bound to its term.
    E4,
    /// Succession.
    E5,
    /// Nobody is silently out.
    E6,
    /// A leader whose node is deleted.
    E7,
    /// Stability.
    E8,
    /// Takeover delay.
    E9,
    /// Onlookers.
    O1,
    /// Permits.
    S1,
    /// Things that go together.
    G1,
    /// The way into a double barrier.
    B1,
    /// The way out of a double barrier.
    B2,
    /// The barrier.
    B3,
    /// Items are kept.
    Q1,
    /// Puts.
    Q2,
    /// The order of items.
    Q3,
    /// Counts of deliveries.
    Q4,
    /// Acknowledgements.
    Q5,
    /// Claims.
    Q6,
    /// Dead letters.
    Q7,
    /// A free item is noticed.
    Q8,
    /// Claims and places are given up.
    Q9,
    /// Views of a folder.
    D1,
    /// Members that never left are shown.
    D2,
    /// Nobody's node is taken away.
    D3,
    /// Announced members are there, and those that left are not.
    D4,
    /// Values do not go back.
    C1,
    /// The last value arrives.
    C2,
    /// Published exactly once.
    C3,
    /// Nothing unseen is overwritten.
    C4,
    /// Counted exactly.
    C5,
    /// Connection state.
    K1,
    /// Deadlines.
    K2,
    /// Nothing is left over.
    K5,
    /// Close.
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
