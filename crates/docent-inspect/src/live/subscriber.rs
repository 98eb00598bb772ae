use super::board::{Change, Posted};
use super::feed::Feed;
use super::{LiveSurvey, SurveyEvent};
use crate::inspect::Survey;
use crate::report::{LeftOut, Refusal, Report};
use docent_core::Error;
use std::collections::HashSet;
use std::sync::Arc;
use tokio::sync::watch;

/// Selection of recipes.
pub(super) type Select = Arc<dyn Fn(&Report) -> bool + Send + Sync>;

/// What a survey does not include.
type Gaps = (Vec<Refusal>, LeftOut, usize);

/// Subscriber of a followed tree.
pub(super) struct Subscriber {
    feed: Arc<Feed>,
    number: watch::Receiver<u64>,
    select: Option<Select>,
    /// Number of the last change that was yielded; `None` before the first snapshot.
    seen: Option<u64>,
    /// Paths of the recipes that were yielded and not deleted since.
    shown: HashSet<Arc<str>>,
    is_stale: bool,
    gaps: Gaps,
    /// Number of the last failure that was yielded.
    failure: u64,
}

impl Subscriber {
    pub(super) fn new(feed: Arc<Feed>, select: Option<Select>) -> Self {
        Self {
            number: feed.number.clone(),
            feed,
            select,
            seen: None,
            shown: HashSet::new(),
            is_stale: false,
            gaps: Gaps::default(),
            failure: 0,
        }
    }

    /// Returns the next item, or `None` once the client is closed. Cancel safe.
    pub(super) async fn next(&mut self) -> Option<Result<SurveyEvent, Error>> {
        loop {
            self.number.borrow_and_update();
            let event = self.failure().map(Err).or_else(|| self.event().map(Ok));
            if event.is_some() {
                return event;
            }
            self.number.changed().await.ok()?;
        }
    }

    fn failure(&mut self) -> Option<Error> {
        let posted = self.feed.board.posted();
        let (number, error) = posted.failure.as_ref().filter(|(number, _)| *number > self.failure)?;
        self.failure = *number;
        Some(error.clone())
    }

    fn event(&mut self) -> Option<SurveyEvent> {
        let feed = Arc::clone(&self.feed);
        loop {
            let posted = feed.board.posted();
            let summary = posted.summary.as_ref()?;
            let Some(seen) = self.seen.filter(|seen| posted.knows_all_since(*seen)) else {
                let (summary, reports) = (summary.clone(), posted.reports().cloned().collect());
                (self.seen, self.gaps, self.is_stale) = (Some(posted.number), gaps(&posted), posted.is_stale);
                drop(posted);
                return Some(self.snapshot(summary, reports));
            };
            let Some((number, change)) = posted.next(seen) else { return self.remainder(&posted) };
            // The user's selection runs without the lock.
            drop(posted);
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
    fn remainder(&mut self, posted: &Posted) -> Option<SurveyEvent> {
        let gaps = gaps(posted);
        if gaps != self.gaps {
            self.gaps = gaps.clone();
            let (refused, left_out, unwatched) = gaps;
            return Some(SurveyEvent::Gaps { refused, left_out, unwatched });
        }
        let was_stale = std::mem::replace(&mut self.is_stale, posted.is_stale);
        match (was_stale, posted.is_stale) {
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

fn gaps(posted: &Posted) -> Gaps {
    let summary = posted.summary.as_ref();
    let (refused, left_out) = summary.map(|it| (it.refused.clone(), it.left_out)).unwrap_or_default();
    (refused, left_out, posted.unwatched)
}
