use crate::inspect::Survey;
use crate::report::Report;
use docent_core::Error;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Number of deletions that are kept for slow subscribers if there are fewer reports than that.
const DELETIONS: usize = 1_024;

/// Current reports of a followed tree, from which any number of subscribers read.
///
/// Each report has the number of its last change, and a subscriber remembers the last number that it has
/// seen. So a subscriber that is slow or never polled needs no memory: it skips intermediate reports. The
/// board keeps as many deletions as reports, but at least 1,024. A subscriber that missed a discarded
/// deletion gets a new snapshot.
#[derive(Debug, Default)]
pub(super) struct Board {
    /// Number of the last change.
    pub(super) number: u64,
    reports: HashMap<Arc<str>, (u64, Arc<Report>)>,
    /// Path of the report that changed last with each number.
    changed: BTreeMap<u64, Arc<str>>,
    /// Deleted paths by number, each with the newest transaction.
    deleted: BTreeMap<u64, (Arc<str>, i64)>,
    /// Number of the last deletion that was discarded.
    discarded: u64,
    /// Everything about the tree except for the recipes. `None` before it was read.
    pub(super) summary: Option<Survey>,
    pub(super) is_stale: bool,
    pub(super) unwatched: usize,
    /// Last error that is not an outage, with its number.
    pub(super) failure: Option<(u64, Error)>,
}

/// A change of a report.
pub(super) enum Change {
    Changed(Arc<str>, Arc<Report>),
    Deleted(Arc<str>, i64),
}

impl Board {
    /// Sets the report on a path, or removes it as of a transaction.
    pub(super) fn set(&mut self, path: Arc<str>, report: Option<Arc<Report>>, as_of_zxid: i64) {
        self.number += 1;
        let before = match report {
            Some(report) => {
                self.changed.insert(self.number, Arc::clone(&path));
                self.reports.insert(path, (self.number, report))
            }
            None => {
                let before = self.reports.remove(&path);
                if before.is_some() {
                    self.deleted.insert(self.number, (path, as_of_zxid));
                }
                before
            }
        };
        if let Some((number, _)) = before {
            self.changed.remove(&number);
        }
        while self.deleted.len() > self.reports.len().max(DELETIONS) {
            self.discarded = self.deleted.pop_first().map_or(self.discarded, |(number, _)| number);
        }
    }

    /// Sets the last failure.
    pub(super) fn fail(&mut self, error: Error) {
        self.number += 1;
        self.failure = Some((self.number, error));
    }

    /// Returns true if all changes after this number are known.
    pub(super) fn knows_all_since(&self, number: u64) -> bool {
        number >= self.discarded
    }

    /// Returns the first change after this number, with its own.
    pub(super) fn next(&self, after: u64) -> Option<(u64, Change)> {
        let changed = self.changed.range(after + 1..).next();
        let deleted = self.deleted.range(after + 1..).next();
        match (changed, deleted) {
            (Some((number, path)), deleted) if deleted.is_none_or(|(other, _)| number < other) => {
                let (_, report) = self.reports.get(path)?;
                Some((*number, Change::Changed(Arc::clone(path), Arc::clone(report))))
            }
            (_, Some((number, (path, zxid)))) => Some((*number, Change::Deleted(Arc::clone(path), *zxid))),
            _ => None,
        }
    }

    /// Returns all reports.
    pub(super) fn reports(&self) -> impl Iterator<Item = &Arc<Report>> {
        self.reports.values().map(|(_, report)| report)
    }
}
