use crate::analysis::Analysis;
use crate::event::{Outcome, Way};
use crate::journal::{Change, ChangeKind};
use crate::publications::{Publication, publications};
use crate::violation::{Found, Invariant, Violation};
use std::collections::BTreeMap;

/// **Published exactly once**:
///
/// - A value that a call reports as published was published once, and by the transaction that the call
///   reports.
/// - A value that a call reports as not published was not.
/// - A call with an unknown outcome published its value at most once.
///
/// The same applies to rollbacks. An acknowledged deletion deleted the node during the call.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    let all = publications(&analysis.run.events);
    let numbers = numbers(analysis, &all);
    let deletions: Vec<&Change> =
        analysis.run.journal.iter().filter(|change| change.kind == ChangeKind::Deleted).collect();
    for publication in all.iter().filter(|publication| !matches!(publication.way, Way::Count)) {
        let what = match publication.number() {
            Some(number) => written(publication, number, &numbers[&(publication.path, number)]),
            None => deleted(analysis, publication, &deletions),
        };
        found.extend(what.map(|what| {
            let at = publication.done.unwrap_or(publication.began);
            let violation = Violation::new(Invariant::C3, at, what).attempt(publication.id);
            violation.client(publication.client).path(publication.path)
        }));
    }
}

/// How often a value may have been published, and the transactions that published it.
#[derive(Debug, Default)]
struct Times {
    least: usize,
    most: usize,
    zxids: Vec<i64>,
}

fn numbers<'a>(analysis: &Analysis<'a>, all: &[Publication<'a>]) -> BTreeMap<(&'a str, u64), Times> {
    let mut numbers: BTreeMap<(&str, u64), Times> = BTreeMap::new();
    for publication in all {
        let Some(number) = publication.number() else { continue };
        let times = numbers.entry((publication.path, number)).or_default();
        times.least += usize::from(matches!(publication.outcome, Outcome::Applied(_)));
        times.most += usize::from(publication.outcome != Outcome::Nothing);
    }
    for write in &analysis.facts().written {
        let Some(number) = write.number else { continue };
        if let Some(times) = numbers.get_mut(&(&*write.path, number)) {
            times.zxids.push(write.zxid);
        }
    }
    numbers
}

fn written(publication: &Publication<'_>, number: u64, times: &Times) -> Option<String> {
    let Times { least, most, zxids } = times;
    if !(*least..=*most).contains(&zxids.len()) {
        return Some(format!("{number} was published {} times, not {least} to {most}:", zxids.len()));
    }
    match publication.outcome {
        Outcome::Applied(Some(zxid)) if !zxids.contains(&zxid) => {
            Some(format!("{number} was not published by {zxid:#x}:"))
        }
        _ => None,
    }
}

fn deleted(analysis: &Analysis<'_>, publication: &Publication<'_>, deletions: &[&Change]) -> Option<String> {
    let (Outcome::Applied(_), Some(done)) = (publication.outcome, publication.done) else { return None };
    let grain = analysis.tolerances().grain;
    let from = deletions.partition_point(|change| change.at + grain < publication.began);
    let mut meanwhile = deletions[from..].iter().take_while(|change| change.at <= done + grain);
    let deleted = meanwhile.any(|change| {
        change.path == publication.path && analysis.client_of(change.session) == Some(publication.client)
    });
    (!deleted).then(|| "reported as deleted, but was not:".to_owned())
}

#[cfg(test)]
mod tests {
    use crate::event::{Outcome, Way};
    use crate::history::{ConfigEvents, HistoryBuilder};
    use crate::violation::Invariant::C3;

    /// A call that publishes 2, which is written `times` times.
    fn published(times: u64, outcome: Outcome) -> HistoryBuilder {
        let mut history = HistoryBuilder::new();
        history.at(100).write_node("/c", 0, Some(1));
        history.at(200).publish(0, 7, "/c", Way::Replace(2));
        for again in 0..times {
            history.at(210 + again).write_again("/c", 0, Some(2));
        }
        history.at(300).published(0, 7, outcome).end(1_000)
    }

    #[test]
    fn a_value_is_published_once() {
        published(1, Outcome::Applied(Some(6))).holds();
        published(0, Outcome::Nothing).holds();
        published(0, Outcome::Unknown).holds();
        published(1, Outcome::Unknown).holds();
    }

    #[test]
    fn another_number_of_writes_is_caught() {
        published(0, Outcome::Applied(None)).breaks(C3);
        published(2, Outcome::Applied(None)).breaks(C3);
        published(1, Outcome::Applied(Some(5))).breaks(C3);
        published(1, Outcome::Nothing).breaks(C3);
        published(2, Outcome::Unknown).breaks(C3);
    }

    #[test]
    fn a_rollback_publishes_the_value_again() {
        let again = |outcome| {
            let mut history = published(1, Outcome::Applied(None));
            history.at(400).publish(1, 8, "/c", Way::Republish(2));
            history.at(410).write_again("/c", 0, Some(2));
            history.at(420).published(1, 8, outcome).end(1_000)
        };
        again(Outcome::Applied(None)).holds();
        again(Outcome::Unknown).holds();
        again(Outcome::Nothing).breaks(C3);
    }

    #[test]
    fn a_deletion_that_never_happened_is_caught() {
        let deleted = |deletes: bool| {
            let mut history = published(1, Outcome::Applied(None));
            history.at(400).publish(0, 8, "/c", Way::Delete);
            if deletes {
                history.at(410).delete_path("/c", 1);
            }
            history.at(420).published(0, 8, Outcome::Applied(None)).end(1_000)
        };
        deleted(true).holds();
        deleted(false).breaks(C3);
    }
}
