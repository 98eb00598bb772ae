use crate::analysis::Analysis;
use crate::event::Following;
use crate::publications::{Follower, followers};
use crate::violation::{Found, Invariant, Violation};
use std::collections::BTreeSet;
use std::time::Duration;

/// **Values do not revert**: a value that a subscription shows was written, by the transaction that the
/// subscription reports, and is never older than the value shown before, across links and sessions. These are
/// V1 and V2 of the promises of subscriptions (`docs/proof.md`).
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    let written: BTreeSet<(&str, i64, u64)> = analysis
        .facts()
        .written
        .iter()
        .filter_map(|write| Some((&*write.path, write.zxid, write.number?)))
        .collect();
    for follower in followers(&analysis.run.events) {
        if let Some((at, what)) = wrong(&follower, &written) {
            let violation = Violation::new(Invariant::C1, at, what);
            found.push(violation.client(follower.client).path(follower.path));
        }
    }
}

fn wrong(follower: &Follower<'_>, written: &BTreeSet<(&str, i64, u64)>) -> Option<(Duration, String)> {
    let mut newest = 0;
    follower.steps.iter().find_map(|(at, step)| {
        let Following::Saw { number, zxid } = step else { return None };
        if !written.contains(&(follower.path, *zxid, *number)) {
            return Some((*at, format!("{number} of {zxid:#x} was shown, but never written:")));
        }
        let before = std::mem::replace(&mut newest, *zxid);
        (*zxid < before).then(|| (*at, format!("{zxid:#x} was shown after {before:#x}:")))
    })
}

#[cfg(test)]
mod tests {
    use crate::history::{ConfigEvents, HistoryBuilder};
    use crate::violation::Invariant::C1;

    fn saw(numbers: &[u64]) -> HistoryBuilder {
        let mut history = HistoryBuilder::new();
        history.at(100).write_node("/c", 0, Some(1)).at(200).write_again("/c", 0, Some(2));
        history.at(300).follow(3, "/c");
        for number in numbers {
            history.saw(3, "/c", *number);
        }
        history.end(1_000)
    }

    #[test]
    fn values_are_shown_in_their_order() {
        saw(&[1, 2]).holds();
        saw(&[2, 2]).holds();
    }

    #[test]
    fn an_older_value_is_caught() {
        saw(&[2, 1]).breaks(C1);
    }

    #[test]
    fn a_value_that_was_never_written_is_caught() {
        saw(&[1, 3]).breaks(C1);
    }
}
