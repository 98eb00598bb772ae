use super::LiveSurvey;
use super::following::{Following, Subject};
use super::turn::turns_in;
use crate::inspect::{Inspection, Inspector, Survey, walk};
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

/// Stream of the recipes below a root: the current ones first, then all of them again after each change.
/// Created by [`Inspector::watch_below`].
#[must_use = "a stream does nothing unless it is polled"]
pub struct Surveys(SyncStream<Result<LiveSurvey, Error>>);

impl Surveys {
    pub(crate) fn new(inspector: &Inspector, root: &str) -> Self {
        let following = Following::new(inspector, Root(root.to_owned()));
        let stream = stream::unfold(following, |mut following| async move {
            let item = following.next().await?;
            Some((item.map(LiveSurvey::from), following))
        });
        Self(SyncStream::new(stream))
    }
}

impl Stream for Surveys {
    type Item = Result<LiveSurvey, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_next_unpin(cx)
    }
}

impl fmt::Debug for Surveys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Surveys").finish_non_exhaustive()
    }
}

/// Path below which recipes are followed.
struct Root(String);

impl Subject for Root {
    type Output = Survey;

    async fn inspect(
        &self,
        inspector: &Inspector,
        earlier: &mut Earlier,
    ) -> Result<Inspection<Survey>, Error> {
        walk(inspector, &self.0, earlier).await
    }

    fn same(one: &Survey, other: &Survey) -> bool {
        let reports = |survey: &Survey| survey.found.iter().map(Report::without_times).collect::<Vec<_>>();
        let rest = |survey: &Survey| (survey.refused.clone(), survey.left_out);
        rest(one) == rest(other) && reports(one) == reports(other)
    }

    fn turns_in(survey: &Survey) -> Option<Duration> {
        survey.found.iter().filter_map(turns_in).min()
    }
}
