use super::Live;
use super::feed::Feed;
use crate::inspect::Inspector;
use docent_core::Error;
use docent_core::recipe::SyncStream;
use futures_core::Stream;
use futures_util::stream::{self, StreamExt};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::watch;

/// Stream of reports on one path: the current one first, then one after each change. Created by
/// [`Inspector::watch`].
#[must_use = "a stream does nothing unless it is polled"]
pub struct Reports(SyncStream<Result<Live, Error>>);

/// Subscriber of the report on one path.
struct Subscriber {
    feed: Arc<Feed>,
    number: watch::Receiver<u64>,
    last: Option<Live>,
    /// Number of the last failure that was yielded.
    failure: u64,
}

impl Reports {
    pub(crate) fn new(inspector: &Inspector, path: &str) -> Self {
        let (inspector, path) = (inspector.clone(), path.to_owned());
        // The first poll subscribes.
        let started = stream::once(async move { inspector.feeds().only(&inspector, &path) });
        Self(SyncStream::new(started.flat_map(|feed| match feed {
            Ok(feed) => {
                let subscriber = Subscriber { number: feed.number.clone(), feed, last: None, failure: 0 };
                stream::unfold(subscriber, |mut subscriber| async move {
                    let item = subscriber.next().await?;
                    Some((item, subscriber))
                })
                .boxed()
            }
            Err(error) => stream::iter([Err(error)]).boxed(),
        })))
    }
}

impl Subscriber {
    /// Returns the next item, or `None` once the client is closed. Cancel safe.
    async fn next(&mut self) -> Option<Result<Live, Error>> {
        loop {
            self.number.borrow_and_update();
            let item = self.item();
            if item.is_some() {
                return item;
            }
            self.number.changed().await.ok()?;
        }
    }

    fn item(&mut self) -> Option<Result<Live, Error>> {
        let posted = self.feed.board.posted();
        if let Some((number, error)) = posted.failure.as_ref().filter(|(number, _)| *number > self.failure) {
            self.failure = *number;
            return Some(Err(error.clone()));
        }
        let report = posted.reports().next()?.as_ref().clone();
        let live = Live { report, is_stale: posted.is_stale, unwatched: posted.unwatched };
        if self.last.as_ref().is_some_and(|last| last.is_same(&live)) {
            return None;
        }
        self.last = Some(live.clone());
        Some(Ok(live))
    }
}

impl Stream for Reports {
    type Item = Result<Live, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_next_unpin(cx)
    }
}

impl fmt::Debug for Reports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reports").finish_non_exhaustive()
    }
}
