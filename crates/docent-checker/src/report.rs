use crate::analysis::Analysis;
use crate::attempts::attempt_of;
use crate::event::{ClientId, Event, EventKind};
use crate::journal::{Change, ChangeKind};
use crate::run::Run;
use crate::violation::Violation;
use std::fmt::Write;
use std::time::Duration;

/// Formats a violation for people: its sentence, followed by the last `lines` entries of the record and the
/// journal before it that concern the same attempts, clients or paths.
pub fn report(run: &Run, violation: &Violation, lines: usize) -> String {
    let analysis = Analysis::of(run);
    let concern = Concern { analysis: &analysis, violation };
    let until = violation.at + run.facts.tolerances.grain;
    let events = run.events.iter().filter(|event| event.at <= until && concern.has(event));
    let changes = run.journal.iter().filter(|change| change.at <= until && concern.has_change(change));
    let mut entries: Vec<(Duration, String)> = events.map(|event| (event.at, event.to_string())).collect();
    entries.extend(changes.map(|change| (change.at, line(change))));
    entries.sort_by_key(|(at, _)| *at);
    let mut text = format!("{violation}\n");
    for (_, line) in &entries[entries.len().saturating_sub(lines)..] {
        let _ = writeln!(text, "  {line}");
    }
    text
}

/// The attempts, clients and paths that a violation concerns.
struct Concern<'a> {
    analysis: &'a Analysis<'a>,
    violation: &'a Violation,
}

impl Concern<'_> {
    fn has(&self, event: &Event) -> bool {
        let Violation { attempts, clients, .. } = self.violation;
        let Some(client) = event.client else { return true };
        let path = match &event.kind {
            EventKind::Requested { path, .. } => path.as_deref(),
            EventKind::Notified { path } => Some(path.as_str()),
            _ => None,
        };
        match (attempt_of(&event.kind), path) {
            (Some(_), _) if attempts.is_empty() => self.concerns(client),
            (Some(attempt), _) => attempts.contains(&attempt),
            (None, Some(path)) => {
                self.concerns(client) && (self.violation.paths.is_empty() || self.is_near(path))
            }
            (None, None) => clients.is_empty() || self.concerns(client),
        }
    }

    fn has_change(&self, change: &Change) -> bool {
        let session = match change.kind {
            ChangeKind::Opened | ChangeKind::Ended(_) => change.session,
            _ => return self.is_near(&change.path),
        };
        self.analysis.client_of(session).is_some_and(|client| self.concerns(client))
    }

    fn concerns(&self, client: ClientId) -> bool {
        self.violation.clients.iter().any(|concerned| concerned.number == client.number)
    }

    /// Returns true for a path of the violation, its parent and its children.
    fn is_near(&self, path: &str) -> bool {
        let near = |other: &String| {
            path == other
                || docent_proto::parent(path) == Some(other)
                || docent_proto::parent(other) == Some(path)
        };
        self.violation.paths.iter().any(near)
    }
}

fn line(change: &Change) -> String {
    let Change { zxid, at, session, kind, path, owner } = change;
    format!("{:>10.4} server zxid {zxid}: {kind:?} {path} by {session:#x} owner {owner:#x}", at.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::HistoryBuilder;
    use crate::{Invariant, check};

    #[test]
    fn a_report_shows_what_led_to_its_violation_and_nothing_else() {
        let mut history = HistoryBuilder::new();
        let first = history.at(100).begin(0);
        history.create(first).at(110).grant(first);
        let second = history.at(120).begin(1);
        history.create(second).at(130).grant(second);
        let elsewhere = history.begin_at(2, "/elsewhere");
        history.create(elsewhere).at(135).grant(elsewhere);
        let run = history.end(1_000).run();
        let violations = check(&run);
        let violation = violations.iter().find(|found| found.invariant == Invariant::M2).unwrap();
        let text = report(&run, violation, 30);
        assert!(text.starts_with("M2 at 0.1300: "), "{text}");
        assert!(text.contains("Granted(AttemptId(2)"), "{text}");
        assert!(text.contains("Created /lock/"), "{text}");
        assert!(!text.contains("elsewhere"), "{text}");
        assert_eq!(report(&run, violation, 3).lines().count(), 4);
    }
}
