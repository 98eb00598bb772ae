use crate::setting::Setting;
use docent_server::Transaction;
use docent_testkit::history::{ClientId, Event, FaultKind, What};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

/// What came of a run.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) setting: Setting,
    pub(crate) events: Vec<Event>,
    pub(crate) journal: Vec<Transaction>,
    /// Whose sessions are which.
    pub(crate) sessions: BTreeMap<i64, ClientId>,
    /// Below these no node may be left.
    pub(crate) emptied: Vec<String>,
    pub(crate) end: EndState,
    /// What did not come to its end.
    pub(crate) unfinished: Option<String>,
}

/// What the server had at the end.
#[derive(Debug)]
pub(crate) struct EndState {
    pub(crate) at: Duration,
    pub(crate) nodes: Vec<String>,
    pub(crate) sessions: Vec<i64>,
    pub(crate) watches: usize,
}

/// Something that must not be.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) invariant: String,
    pub(crate) what: String,
    /// What it concerns, as it is written in events.
    pub(crate) words: Vec<String>,
}

impl Outcome {
    /// The same for runs in which the same happened.
    pub(crate) fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.events.hash(&mut hasher);
        for transaction in &self.journal {
            format!("{transaction:?}").hash(&mut hasher);
        }
        hasher.finish()
    }

    /// All that is wrong with the run.
    pub(crate) fn failures(&self) -> Vec<Failure> {
        let mut failures = Vec::new();
        let mut fail = |invariant: &str, what: String| {
            failures.push(Failure { invariant: invariant.to_owned(), what, words: Vec::new() });
        };
        if let Some(unfinished) = &self.unfinished {
            fail("end", unfinished.clone());
        }
        if !self.end.sessions.is_empty() {
            fail("sessions", format!("{:x?} are left", self.end.sessions));
        }
        for node in self.left_over() {
            fail("nodes", format!("{node} is left"));
        }
        failures
    }

    fn left_over(&self) -> impl Iterator<Item = &String> {
        let is_below = |node: &str, path: &str| node.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'));
        self.end.nodes.iter().filter(move |node| self.emptied.iter().any(|path| is_below(node, path)))
    }

    fn count(&self, counts: impl Fn(&What) -> bool) -> usize {
        self.events.iter().filter(|event| counts(&event.what)).count()
    }

    /// How often each kind of fault struck.
    fn faults(&self) -> BTreeMap<String, usize> {
        let mut faults = BTreeMap::new();
        for event in &self.events {
            if let What::Fault(kind) = &event.what {
                *faults.entry(name(kind)).or_default() += 1;
            }
        }
        faults
    }
}

/// One line for machines: words of the form `key=value`.
impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let failures = self.failures();
        let verdict = if failures.is_empty() { "ok" } else { "failed" };
        write!(f, "seed={} hash={:016x} verdict={verdict}", self.setting.seed, self.hash())?;
        let broken: BTreeSet<&str> = failures.iter().map(|failure| failure.invariant.as_str()).collect();
        if !broken.is_empty() {
            write!(f, " broken={}", broken.into_iter().collect::<Vec<_>>().join(","))?;
        }
        let millis = self.end.at.as_millis();
        write!(f, " simulated_ms={millis} clients={}", self.setting.clients)?;
        write!(f, " events={} transactions={}", self.events.len(), self.journal.len())?;
        let began = self.count(|what| matches!(what, What::Began(_)));
        let grants = self.count(|what| matches!(what, What::Granted(..)));
        let losses = self.count(|what| matches!(what, What::Lost(_)));
        let uses = self.count(|what| matches!(what, What::Used(..)));
        let sessions = self.sessions.len();
        write!(f, " attempts={began} grants={grants} losses={losses} uses={uses} sessions={sessions}")?;
        self.faults().iter().try_for_each(|(kind, count)| write!(f, " fault.{kind}={count}"))
    }
}

fn name(kind: &FaultKind) -> String {
    match kind {
        FaultKind::Reset { applied: true } => "ResetAfter".to_owned(),
        FaultKind::Reset { applied: false } => "ResetBefore".to_owned(),
        other => format!("{other:?}"),
    }
}
