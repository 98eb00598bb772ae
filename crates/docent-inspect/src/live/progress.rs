use super::board::{Board, Change};
use super::feed::Feed;
use super::{LiveSurvey, SurveyEvent};
use crate::inspect::Survey;
use crate::report::{LeftOut, Refusal, Report};
use std::collections::HashSet;
use std::sync::Arc;

/// Selection of recipes.
pub(super) type Select = Box<dyn Fn(&Report) -> bool + Send + Sync>;

/// What a survey does not include.
type Gaps = (Vec<Refusal>, LeftOut, usize);

/// What a subscriber of a followed tree has seen of its board.
#[derive(Default)]
pub(super) struct Progress {
    select: Option<Select>,
    /// Number of the last change that was yielded; `None` before the first snapshot.
    seen: Option<u64>,
    /// Paths of the recipes that were yielded and not deleted since.
    shown: HashSet<Arc<str>>,
    is_stale: bool,
    gaps: Gaps,
}

impl Progress {
    pub(super) fn new(select: Option<Select>) -> Self {
        Self { select, ..Self::default() }
    }

    /// Returns what is new on the board.
    pub(super) fn next(&mut self, feed: &Feed) -> Option<SurveyEvent> {
        loop {
            let board = feed.borrow();
            let summary = board.summary.as_ref()?;
            let Some(seen) = self.seen.filter(|seen| board.knows_all_since(*seen)) else {
                let (summary, reports) = (summary.clone(), board.reports().cloned().collect());
                (self.seen, self.gaps, self.is_stale) = (Some(board.number), gaps(&board), board.is_stale);
                drop(board);
                return Some(self.snapshot(summary, reports));
            };
            let Some((number, change)) = board.next(seen) else { return self.remainder(&board) };
            // The user's selection runs without the lock.
            drop(board);
            self.seen = Some(number);
            let event = match change {
                Change::Changed(path, report) if self.selects(&report) => {
                    self.shown.insert(path);
                    Some(SurveyEvent::Changed(Box::new(report.as_ref().clone())))
                }
                Change::Changed(path, report) => self.gone(&path, report.as_of_zxid),
                Change::Deleted(path, as_of_zxid) => self.gone(&path, as_of_zxid),
            };
            if event.is_some() {
                return event;
            }
        }
    }

    /// Returns what has changed except for reports, once all of these were yielded.
    fn remainder(&mut self, board: &Board) -> Option<SurveyEvent> {
        let gaps = gaps(board);
        if gaps != self.gaps {
            self.gaps = gaps.clone();
            let (refused, left_out, unwatched) = gaps;
            return Some(SurveyEvent::Gaps { refused, left_out, unwatched });
        }
        let was_stale = std::mem::replace(&mut self.is_stale, board.is_stale);
        match (was_stale, board.is_stale) {
            (false, true) => Some(SurveyEvent::Stale),
            (true, false) => Some(SurveyEvent::Current),
            _ => None,
        }
    }

    fn snapshot(&mut self, summary: Survey, reports: Vec<Arc<Report>>) -> SurveyEvent {
        let found: Vec<_> =
            reports.into_iter().filter(|it| self.selects(it)).map(|it| it.as_ref().clone()).collect();
        self.shown = found.iter().map(|report| Arc::from(&*report.path)).collect();
        let survey = Survey { found, ..summary }.sorted();
        SurveyEvent::Snapshot(Box::new(LiveSurvey {
            survey,
            is_stale: self.is_stale,
            unwatched: self.gaps.2,
        }))
    }

    fn selects(&self, report: &Report) -> bool {
        self.select.as_ref().is_none_or(|select| select(report))
    }

    fn gone(&mut self, path: &str, as_of_zxid: i64) -> Option<SurveyEvent> {
        self.shown.remove(path).then(|| SurveyEvent::Gone { path: path.to_owned(), as_of_zxid })
    }
}

fn gaps(board: &Board) -> Gaps {
    let summary = board.summary.as_ref();
    let (refused, left_out) = summary.map(|it| (it.refused.clone(), it.left_out)).unwrap_or_default();
    (refused, left_out, board.unwatched)
}
