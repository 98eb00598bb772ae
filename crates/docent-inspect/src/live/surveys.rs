use super::SurveyEvent;
use super::feed::subscribe;
use super::progress::{Progress, Select};
use crate::inspect::Inspector;
use crate::report::Report;
use docent_core::Error;
use docent_core::recipe::SyncStream;
use futures_core::Stream;
use futures_util::stream::StreamExt;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Stream of the recipes below a root: the current ones first, then each change. Created by
/// [`Inspector::watch_below`].
#[must_use = "a stream does nothing unless it is polled"]
pub struct Surveys {
    inspector: Inspector,
    root: String,
    events: SyncStream<Result<SurveyEvent, Error>>,
}

impl Surveys {
    pub(crate) fn new(inspector: Inspector, root: String, select: Option<Select>) -> Self {
        let mut progress = Progress::new(select);
        let events = subscribe(&inspector, &root, true, move |feed| progress.next(feed));
        Self { inspector, root, events }
    }

    /// Yields only the recipes for which `select` returns true, such as those of one kind. A recipe that was
    /// yielded and is not selected any more is [`Gone`](SurveyEvent::Gone). The stream starts again with a
    /// snapshot.
    pub fn select(self, select: impl Fn(&Report) -> bool + Send + Sync + 'static) -> Self {
        Self::new(self.inspector, self.root, Some(Box::new(select)))
    }
}

impl Stream for Surveys {
    type Item = Result<SurveyEvent, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.events.poll_next_unpin(cx)
    }
}

impl fmt::Debug for Surveys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Surveys").field("root", &self.root).finish_non_exhaustive()
    }
}
