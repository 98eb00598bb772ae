//! The recipes below a root, as a subscriber of their changes knows them.

use docent::inspect::{Kind, Recipe, Report, SurveyEvent, Surveys};
use docent_tests::soon;
use futures_util::StreamExt;
use std::collections::BTreeMap;

/// Recipes as a subscriber knows them.
pub(crate) struct Followed {
    events: Surveys,
    pub(crate) found: BTreeMap<String, Report>,
    pub(crate) is_stale: bool,
    pub(crate) unwatched: usize,
    /// Number of events except for snapshots.
    pub(crate) deltas: usize,
    pub(crate) snapshots: usize,
    /// Transactions of the deltas in the order of their arrival.
    pub(crate) zxids: Vec<i64>,
}

impl Followed {
    pub(crate) fn new(events: Surveys) -> Self {
        let (found, zxids) = (BTreeMap::new(), Vec::new());
        Self { events, found, is_stale: false, unwatched: 0, deltas: 0, snapshots: 0, zxids }
    }

    /// Applies the next event. Returns false at the end.
    pub(crate) async fn next(&mut self) -> bool {
        let Some(event) = self.events.next().await else { return false };
        self.deltas += 1;
        match event.unwrap() {
            SurveyEvent::Snapshot(live) => {
                self.deltas -= 1;
                self.snapshots += 1;
                (self.is_stale, self.unwatched) = (live.is_stale, live.unwatched);
                self.found = live.survey.found.into_iter().map(|it| (it.path.clone(), it)).collect();
            }
            SurveyEvent::Changed(report) => {
                self.zxids.push(report.as_of_zxid);
                self.found.insert(report.path.clone(), *report);
            }
            SurveyEvent::Gone { path, as_of_zxid } => {
                self.zxids.push(as_of_zxid);
                assert!(self.found.remove(&path).is_some(), "{path} was not shown");
            }
            SurveyEvent::Gaps { unwatched, .. } => self.unwatched = unwatched,
            SurveyEvent::Stale => self.is_stale = true,
            SurveyEvent::Current => self.is_stale = false,
            other => panic!("{other:?}"),
        }
        true
    }

    /// Applies events until `holds` returns true.
    pub(crate) async fn until(&mut self, holds: impl Fn(&Self) -> bool) {
        soon(async {
            while !holds(self) {
                assert!(self.next().await, "the stream has ended");
            }
        })
        .await;
    }

    /// Applies the first event.
    pub(crate) async fn first(&mut self) {
        self.until(|this| this.snapshots > 0).await;
    }

    pub(crate) fn kinds(&self) -> Vec<(&str, Kind)> {
        self.found.iter().map(|(path, report)| (&**path, report.kind())).collect()
    }

    /// Returns the text of the counter at a path.
    pub(crate) fn number(&self, path: &str) -> Option<&str> {
        match &self.found.get(path)?.recipe {
            Recipe::Counter(counter) => Some(&counter.number),
            _ => None,
        }
    }

    /// Returns the number of contenders of the mutex at a path.
    pub(crate) fn contenders(&self, path: &str) -> usize {
        match self.found.get(path).map(|report| &report.recipe) {
            Some(Recipe::Mutex(line)) => line.contenders.len(),
            _ => 0,
        }
    }
}
