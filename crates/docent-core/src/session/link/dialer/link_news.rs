use crate::session::LinkError;
use crate::telemetry::Instruments;
use crate::time::seconds;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// News of a client's own link, for its log: the server, the reason why the last link was lost, and how long
/// the process stood still.
#[derive(Debug, Clone)]
pub(crate) struct LinkNews {
    pub(crate) instruments: Arc<Instruments>,
    news: Arc<Mutex<News>>,
}

#[derive(Debug, Default)]
struct News {
    /// Server of the last attached link.
    server: Option<String>,
    /// Reason why that link was lost, and when.
    lost: Option<(LinkError, Instant)>,
    /// Longest time by which the session's task came late since the last attached link.
    standstill: Option<Duration>,
    /// Set when it was told that no server can be reached, until one is.
    unreachable: bool,
}

impl LinkNews {
    pub(crate) fn new(instruments: Arc<Instruments>) -> Self {
        Self { instruments, news: Arc::default() }
    }

    /// News of another link, which is told by nobody.
    pub(super) fn aside(&self) -> Self {
        let aside = Self::new(Arc::clone(&self.instruments));
        aside.lock().unreachable = true;
        aside
    }

    fn lock(&self) -> MutexGuard<'_, News> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Label of the client.
    pub(crate) fn client(&self) -> &Arc<str> {
        self.instruments.client()
    }

    /// The session was attached at `server`.
    pub(crate) fn attached(&self, server: String) {
        let mut news = self.lock();
        (news.server, news.unreachable, news.standstill) = (Some(server), false, None);
    }

    /// A link that was attached is lost.
    pub(crate) fn lost(&self, error: LinkError) {
        self.lock().lost = Some((error, Instant::now()));
    }

    /// A round through all servers brought no link. Told once, until there was one.
    pub(crate) fn unreachable(&self, why: Option<&LinkError>) {
        if !std::mem::replace(&mut self.lock().unreachable, true) {
            let cause = why.map(LinkError::chain).unwrap_or_default();
            tracing::warn!(client = %self.client(), cause, "no server can be reached, trying on");
        }
    }

    /// The session's task came so much after the time it had asked for.
    pub(crate) fn stood_still(&self, late: Duration) {
        let mut news = self.lock();
        news.standstill = news.standstill.max(Some(late));
        tracing::warn!(
            client = %self.client(),
            late = %seconds(late),
            "this process stood still, or code that blocks held up the session's task"
        );
    }

    /// Server of the last attached link.
    pub(crate) fn server(&self) -> String {
        self.lock().server.clone().unwrap_or_else(|| "unknown".to_owned())
    }

    /// Reason why the last attached link was lost.
    pub(crate) fn why_lost(&self) -> String {
        self.lock().lost.as_ref().map_or_else(|| "unknown".to_owned(), |(error, _)| error.chain())
    }

    /// Time since the last attached link was lost; `None` before that.
    pub(crate) fn down_for(&self) -> Option<Duration> {
        self.lock().lost.as_ref().map(|(_, at)| at.elapsed())
    }

    /// Time that the process stood still since the session was attached last.
    pub(crate) fn standstill(&self) -> Option<Duration> {
        self.lock().standstill
    }
}
