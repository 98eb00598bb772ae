use crate::setting::Setting;
use docent::recipe::is_own_path;
use docent_checker::{Coverage, EventKind, FaultKind, Invariant, Run, Violation, check, report};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Number of lines of the history before a violation that are shown.
const LAST: usize = 60;

/// Number of failures that are shown with the history before them. Collecting it takes long in a long run.
pub(crate) const SHOWN: usize = 5;

/// Result of a run.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) setting: Setting,
    pub(crate) run: Run,
    /// Everything that failed.
    pub(crate) failures: Vec<Failure>,
}

/// Something that must not happen.
#[derive(Debug)]
pub(crate) struct Failure {
    /// Name of the failure, in one word.
    pub(crate) name: String,
    /// Description of the failure. For the first few it includes the history before it.
    pub(crate) text: String,
}

impl Outcome {
    /// Checks a run against all invariants. `unfinished` describes what did not end, and `denied` contains
    /// the operations that failed because of a missing permission.
    pub(crate) fn new(
        setting: Setting,
        run: Run,
        emptied: &[String],
        unfinished: Option<String>,
        denied: &[String],
    ) -> Self {
        let mut failures = Vec::new();
        if let Some(text) = unfinished {
            failures.push(Failure { name: "end".to_owned(), text });
        }
        for error in denied {
            failures.push(Failure { name: "denied".to_owned(), text: error.clone() });
        }
        for node in remaining_nodes(&run, emptied) {
            failures.push(Failure { name: "nodes".to_owned(), text: format!("{node} was left behind") });
        }
        for violation in check(&run) {
            let text = match failures.len() < SHOWN {
                true => report(&run, &violation, LAST),
                false => violation.to_string(),
            };
            failures.push(Failure { name: broken(&violation), text });
        }
        Self { setting, run, failures }
    }

    /// How often each kind of fault happened.
    fn faults(&self) -> BTreeMap<String, usize> {
        let mut faults = BTreeMap::new();
        for event in &self.run.events {
            if let EventKind::Fault(kind) = &event.kind {
                *faults.entry(name(*kind)).or_default() += 1;
            }
        }
        faults
    }
}

/// The name of what a violation violates.
fn broken(violation: &Violation) -> String {
    match violation.invariant {
        Invariant::Record => "record".to_owned(),
        invariant => invariant.to_string(),
    }
}

/// Nodes that were left behind below the paths that must be empty at the end.
fn remaining_nodes<'a>(run: &'a Run, emptied: &'a [String]) -> impl Iterator<Item = &'a String> {
    let is_below = |node: &str, path: &str| node.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'));
    // This child keeps the node of an election with a takeover delay.
    let stays = |node: &str| is_own_path(node) || node.ends_with("/docent-keeper");
    let nodes = run.facts.end.nodes.iter().filter(move |node| !stays(node));
    nodes.filter(move |node| emptied.iter().any(|path| is_below(node, path)))
}

/// One line for programs: words of the form `key=value`.
impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { setting, run, failures } = self;
        let verdict = if failures.is_empty() { "ok" } else { "failed" };
        write!(f, "seed={} hash={} verdict={verdict}", setting.seed, run.fingerprint())?;
        let broken: BTreeSet<&str> = failures.iter().map(|failure| failure.name.as_str()).collect();
        if !broken.is_empty() {
            write!(f, " broken={}", broken.into_iter().collect::<Vec<_>>().join(","))?;
        }
        write!(f, " simulated_ms={} clients={}", run.facts.end.at.as_millis(), setting.clients)?;
        write!(f, " events={} changes={}", run.events.len(), run.journal.len())?;
        write!(f, " sessions={} {}", run.facts.sessions.len(), Coverage::of(run))?;
        self.faults().iter().try_for_each(|(kind, count)| write!(f, " fault.{kind}={count}"))
    }
}

fn name(kind: FaultKind) -> String {
    match kind {
        FaultKind::Reset { applied: true } => "ResetAfter".to_owned(),
        FaultKind::Reset { applied: false } => "ResetBefore".to_owned(),
        other => format!("{other:?}"),
    }
}
