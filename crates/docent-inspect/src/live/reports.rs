use super::Live;
use super::following::{Following, Subject};
use super::turn::turns_in;
use crate::inspect::{Inspection, Inspector};
use crate::nodes::Earlier;
use crate::report::Report;
use docent_core::Error;
use docent_core::recipe::SyncStream;
use futures_core::Stream;
use futures_util::stream::{self, StreamExt};
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// Stream of reports on one path: the current one first, then one after each change. Created by
/// [`Inspector::watch`].
#[must_use = "a stream does nothing unless it is polled"]
pub struct Reports(SyncStream<Result<Live, Error>>);

impl Reports {
    pub(crate) fn new(inspector: &Inspector, path: &str) -> Self {
        let following = Following::new(inspector, Path(path.to_owned()));
        let stream = stream::unfold(following, |mut following| async move {
            let item = following.next().await?;
            Some((item.map(Live::from), following))
        });
        Self(SyncStream::new(stream))
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

/// Path that is followed.
struct Path(String);

impl Subject for Path {
    type Output = Report;

    async fn inspect(
        &self,
        inspector: &Inspector,
        earlier: &mut Earlier,
    ) -> Result<Inspection<Report>, Error> {
        inspector.inspect(&self.0, earlier).await
    }

    fn same(one: &Report, other: &Report) -> bool {
        one.without_times() == other.without_times()
    }

    fn turns_in(report: &Report) -> Option<Duration> {
        turns_in(report)
    }
}
