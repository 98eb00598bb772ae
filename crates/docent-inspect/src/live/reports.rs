use super::Live;
use super::feed::subscribe;
use crate::inspect::Inspector;
use docent_core::Error;
use docent_core::recipe::SyncStream;
use futures_core::Stream;
use futures_util::stream::StreamExt;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Stream of reports on one path: the current one first, then one after each change. Created by
/// [`Inspector::watch`].
#[must_use = "a stream does nothing unless it is polled"]
pub struct Reports(SyncStream<Result<Live, Error>>);

impl Reports {
    pub(crate) fn new(inspector: &Inspector, path: &str) -> Self {
        let mut last = None;
        Self(subscribe(inspector, path, false, move |feed| {
            let board = feed.borrow();
            let report = board.reports().next()?;
            let (is_stale, unwatched) = (board.is_stale, board.unwatched);
            let state = Some((report.without_times(), is_stale, unwatched));
            let is_new = state != last;
            last = state;
            is_new.then(|| Live { report: report.as_ref().clone(), is_stale, unwatched })
        }))
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
