use crate::analysis::Analysis;
use crate::attempt_trace::AttemptTrace;
use crate::violation::{Found, Invariant, Violation};

/// **Terms of one candidate follow each other**: gained and lost alternate. Its work in one term is over,
/// done or dropped, before it stands for the next one, and a term that was lost is told to be lost before the
/// next begins.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    for candidate in analysis.elections.candidates().values() {
        let traces = candidate.attempts.iter().filter_map(|id| analysis.attempts.get(*id));
        let mut last: Option<&AttemptTrace<'_>> = None;
        for trace in traces {
            if let Some(wrong) = last.and_then(|last| wrong(last, trace)) {
                let violation = Violation::new(Invariant::E3, trace.began, wrong).client(trace.client);
                let violation =
                    last.into_iter().fold(violation, |violation, last| violation.attempt(last.id()));
                found.push(violation.attempt(trace.id()).path(trace.attempt.path.clone()));
            }
            last = Some(trace);
        }
    }
}

fn wrong(last: &AttemptTrace<'_>, next: &AttemptTrace<'_>) -> Option<&'static str> {
    let over = |over: Option<std::time::Duration>| over.is_some_and(|over| over <= next.began);
    match last.granted {
        None if !over(last.waited_until()) => Some("a candidate stands twice:"),
        Some(_) if !over(last.given_up()) => Some("a candidate stands again while its work goes on:"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::event::{AttemptId, Ending};
    use crate::history::{ElectionEvents, HistoryBuilder};
    use crate::violation::Invariant::E3;

    fn led() -> (HistoryBuilder, AttemptId) {
        let mut history = HistoryBuilder::new();
        let first = history.at(100).run_at(0, 7);
        history.create(first).at(110).grant(first);
        (history, first)
    }

    #[test]
    fn one_term_after_the_other_is_right() {
        let (mut history, first) = led();
        history.at(200).releasing(first);
        let second = history.run_at(0, 7);
        history.at(202).delete(first).at(210).create(second).at(220).grant(second).at(300).releasing(second);
        history.delete(second).end(400).holds();
    }

    #[test]
    fn work_that_goes_on_into_the_next_term_is_caught() {
        let (mut history, first) = led();
        let second = history.at(200).run_at(0, 7);
        history.at(201).releasing(first).delete(first).at(210).create(second).at(220).grant(second);
        history.end(400).breaks(E3);
    }

    #[test]
    fn who_stands_twice_is_caught() {
        let (mut history, first) = led();
        history.at(120).releasing(first).delete(first);
        let (second, third) = (history.run_at(0, 7), history.run_at(0, 7));
        history.at(130).create(second).create(third).at(140).grant(second);
        history.at(150).ended(third, Ending::Cancelled).delete(third).end(400).breaks(E3);
    }

    #[test]
    fn candidates_of_one_client_do_not_wait_for_each_other() {
        let (mut history, first) = led();
        let other = history.at(120).run_at(0, 8);
        history.create(other).at(200).releasing(first).delete(first).at(210).grant(other).end(400).holds();
    }
}
