use crate::setting::Setting;
use docent::recipe::is_own_path;
use docent_checker::{Coverage, EventKind, FaultKind, Invariant, Run, Violation, check, report};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// How many lines of what led to a violation are shown.
const LAST: usize = 60;

/// How many failures are shown, with what led to them. To find that takes long in a long run.
pub(crate) const SHOWN: usize = 5;

/// Result of a run.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) setting: Setting,
    pub(crate) run: Run,
    /// All that is wrong.
    pub(crate) failures: Vec<Failure>,
}

/// Something that must not be.
#[derive(Debug)]
pub(crate) struct Failure {
    /// Its name, in one word.
    pub(crate) name: String,
    /// Account of the failure, for the first few with the events that led to it.
    pub(crate) text: String,
}

impl Outcome {
    /// Holds a run against all invariants. `unfinished` is what did not come to its end, and `denied` are the
    /// operations that failed for want of a permission.
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
        for node in left_over(&run, emptied) {
            failures.push(Failure { name: "nodes".to_owned(), text: format!("{node} is left") });
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

    /// How often each kind of fault struck.
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

/// The name of what a violation breaks.
fn broken(violation: &Violation) -> String {
    match violation.invariant {
        Invariant::Record => "record".to_owned(),
        invariant => invariant.to_string(),
    }
}

/// Nodes below the paths that must be empty at the end.
fn left_over<'a>(run: &'a Run, emptied: &'a [String]) -> impl Iterator<Item = &'a String> {
    let is_below = |node: &str, path: &str| node.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'));
    // An election with a takeover delay keeps its node by this child.
    let stays = |node: &str| is_own_path(node) || node.ends_with("/docent-keeper");
    let nodes = run.facts.end.nodes.iter().filter(move |node| !stays(node));
    nodes.filter(move |node| emptied.iter().any(|path| is_below(node, path)))
}

/// One line for machines: words of the form `key=value`.
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
