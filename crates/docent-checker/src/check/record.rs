use crate::analysis::Analysis;
use crate::event::{ClientId, Event, EventKind};
use crate::violation::{Found, Invariant, Violation};
use std::time::Duration;

/// A record that contradicts itself proves nothing. Times and transactions never decrease, an attempt begins
/// once and is granted or ends once, its guard is used only between grant and release, and a crashed client
/// records nothing.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    for (attempt, index, wrong) in &analysis.attempts.contradictions {
        let event = &analysis.run.events[*index];
        let violation = Violation::new(Invariant::Record, event.at, *wrong).attempt(*attempt);
        found.push(with_client(violation, event.client));
    }
    let mut last = Duration::ZERO;
    for (_, event) in analysis.events() {
        if event.at < last {
            let what = "the clock of the record went back";
            found.push(with_client(Violation::new(Invariant::Record, event.at, what), event.client));
        }
        last = last.max(event.at);
        if reports_after_crash(analysis, event) {
            let what = format!("a client recorded an event after it crashed: {:?}", event.kind);
            found.push(with_client(Violation::new(Invariant::Record, event.at, what), event.client));
        }
    }
    for pair in analysis.run.journal.windows(2) {
        if pair[1].zxid < pair[0].zxid || pair[1].at < pair[0].at {
            let what = format!("the journal went back after transaction {}", pair[0].zxid);
            found.push(Violation::new(Invariant::Record, pair[1].at, what).path(pair[1].path.clone()));
        }
    }
}

fn reports_after_crash(analysis: &Analysis<'_>, event: &Event) -> bool {
    let by_world = matches!(event.kind, EventKind::Fault(_) | EventKind::Healed(_) | EventKind::Crashed);
    let crashed = event.client.and_then(|client| analysis.life(client)?.crashed);
    !by_world && crashed.is_some_and(|crashed| crashed < event.at)
}

fn with_client(violation: Violation, client: Option<ClientId>) -> Violation {
    match client {
        Some(client) => violation.client(client),
        None => violation,
    }
}

#[cfg(test)]
mod tests {
    use crate::event::{Ending, EventKind};
    use crate::history::HistoryBuilder;
    use crate::violation::Invariant::Record;

    #[test]
    fn a_guard_that_was_given_up_is_not_used() {
        let mut history = HistoryBuilder::new();
        let attempt = history.at(100).begin(0);
        history.create(attempt).at(110).grant(attempt).at(200).dropped(attempt).delete(attempt);
        history.end(1_000).holds();
        history.at(210).used(attempt).end(1_000).breaks(Record);
    }

    #[test]
    fn an_attempt_is_granted_or_ends_and_only_once() {
        let mut history = HistoryBuilder::new();
        let attempt = history.at(100).begin(0);
        history.create(attempt).at(110).grant(attempt);
        history.clone().at(120).ended(attempt, Ending::Cancelled).end(1_000).breaks(Record);
        history.clone().at(120).grant(attempt).end(1_000).breaks(Record);
        history.at(120).released(attempt, false).end(1_000).breaks(Record);
    }

    #[test]
    fn time_does_not_go_backwards() {
        let mut history = HistoryBuilder::new();
        history.at(100).record(0, EventKind::Started).at(90).record(1, EventKind::Started);
        history.end(1_000).breaks(Record);
        let mut run = HistoryBuilder::good();
        run.run.journal.swap(0, 5);
        run.breaks_also(Record);
    }

    #[test]
    fn a_crashed_client_reports_nothing() {
        let mut history = HistoryBuilder::new();
        history
            .at(100)
            .record(0, EventKind::Crashed)
            .at(110)
            .record(0, EventKind::Notified { path: "/a".to_owned() });
        history.end(1_000).breaks(Record);
    }
}
