use super::SurveyEvent;
use super::subscriber::{Select, Subscriber};
use crate::inspect::Inspector;
use crate::report::Report;
use docent_core::Error;
use docent_core::recipe::SyncStream;
use futures_core::Stream;
use futures_util::stream::{self, StreamExt};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Stream of the recipes below a root: the current ones first, then each change. Created by
/// [`Inspector::watch_below`].
#[must_use = "a stream does nothing unless it is polled"]
pub struct Surveys {
    inspector: Inspector,
    root: String,
    select: Option<Select>,
    /// `None` before the first poll.
    events: Option<SyncStream<Result<SurveyEvent, Error>>>,
}

impl Surveys {
    pub(crate) fn new(inspector: &Inspector, root: &str) -> Self {
        Self { inspector: inspector.clone(), root: root.to_owned(), select: None, events: None }
    }

    /// Yields only the recipes for which `select` returns true, such as those of one kind. A recipe that was
    /// yielded and is not selected any more is [`Gone`](SurveyEvent::Gone). The stream starts again with a
    /// snapshot.
    pub fn select(mut self, select: impl Fn(&Report) -> bool + Send + Sync + 'static) -> Self {
        self.select = Some(Arc::new(select));
        self.events = None;
        self
    }

    fn start(&self) -> SyncStream<Result<SurveyEvent, Error>> {
        match self.inspector.feeds().below(&self.inspector, &self.root) {
            Ok(feed) => {
                let subscriber = Subscriber::new(feed, self.select.clone());
                SyncStream::new(stream::unfold(subscriber, |mut subscriber| async move {
                    let event = subscriber.next().await?;
                    Some((event, subscriber))
                }))
            }
            Err(error) => SyncStream::new(stream::iter([Err(error)])),
        }
    }
}

impl Stream for Surveys {
    type Item = Result<SurveyEvent, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut events = self.events.take().unwrap_or_else(|| self.start());
        let event = events.poll_next_unpin(cx);
        self.events = Some(events);
        event
    }
}

impl fmt::Debug for Surveys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Surveys").field("root", &self.root).finish_non_exhaustive()
    }
}
