use crate::analysis::Analysis;
use crate::event::{Outcome, Way};
use crate::publications::{Publication, publications};
use crate::violation::{Found, Invariant, Violation};
use std::collections::BTreeSet;

/// **Counted exactly**: each transaction increases a counter by one. Its last number is at least the number
/// of acknowledged calls, and at most that plus the number of calls with an unknown outcome.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    let all = publications(&analysis.run.events);
    let counts = || all.iter().filter(|publication| publication.way == Way::Count);
    let paths: BTreeSet<&str> = counts().map(|publication| publication.path).collect();
    for path in paths {
        let numbers = analysis.facts().written.iter().filter(|write| write.path == path);
        let numbers: Vec<_> = numbers.map(|write| write.number).collect();
        let last = numbers.last().copied().flatten().unwrap_or_default();
        let of = |is: fn(&Publication<'_>) -> bool| {
            u64::try_from(counts().filter(|count| count.path == path && is(count)).count())
                .unwrap_or(u64::MAX)
        };
        let least = of(|count| matches!(count.outcome, Outcome::Applied(_)));
        let most = of(|count| count.outcome != Outcome::Nothing);
        let in_turn = numbers.iter().zip(1..).all(|(is, number)| *is == Some(number));
        if !in_turn || !(least..=most).contains(&last) {
            let what = format!("counted {numbers:?}, not each up to {least}, or at most {most}:");
            found.push(Violation::new(Invariant::C5, analysis.facts().end.at, what).path(path));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::event::{Outcome, Way};
    use crate::history::{ConfigEvents, HistoryBuilder};
    use crate::violation::Invariant::C5;

    fn counted(numbers: &[u64], outcomes: &[Outcome]) -> HistoryBuilder {
        let mut history = HistoryBuilder::new();
        for (id, _) in (7..).zip(outcomes) {
            history.at(100).publish(0, id, "/n", Way::Count);
        }
        for number in numbers {
            history.at(150).write_again("/n", 0, Some(*number));
        }
        for (id, outcome) in (7..).zip(outcomes) {
            history.at(200).published(0, id, *outcome);
        }
        history.end(1_000)
    }

    #[test]
    fn each_increment_counts_once() {
        let applied = Outcome::Applied(None);
        counted(&[1, 2], &[applied, applied]).holds();
        counted(&[1, 2], &[applied, Outcome::Nothing, Outcome::Unknown]).holds();
        counted(&[1], &[applied, Outcome::Nothing, Outcome::Unknown]).holds();
    }

    #[test]
    fn an_increment_that_is_lost_or_counted_twice_is_caught() {
        let applied = Outcome::Applied(None);
        counted(&[1], &[applied, applied]).breaks(C5);
        counted(&[1, 2], &[applied]).breaks(C5);
        counted(&[1, 1, 2], &[applied, applied, applied]).breaks(C5);
        counted(&[1], &[Outcome::Nothing]).breaks(C5);
    }
}
