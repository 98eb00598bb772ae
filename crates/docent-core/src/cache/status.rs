use crate::error::{Error, ErrorKind};
use crate::operation::Shared;
use crate::task::SyncStream;
use crate::time::{Clock, Timestamp, deadline};
use futures_core::Stream;
use futures_util::stream::{self, StreamExt};
use std::time::Duration;
use tokio::sync::watch;

/// State of a cache.
#[derive(Debug, Clone)]
pub(super) struct Status {
    /// True after the first load.
    pub(super) loaded: bool,
    /// Time since which the cache may be out of date; `None` if it is up to date according to the servers'
    /// events.
    pub(super) stale_since: Option<Timestamp>,
    /// Error while the cache's node cannot be read.
    pub(super) last_error: Option<Error>,
    pub(super) closed: bool,
}

impl Status {
    pub(super) fn new(clock: &dyn Clock) -> Self {
        Self { loaded: false, stale_since: Some(clock.now()), last_error: None, closed: false }
    }

    pub(super) fn caught_up(&mut self) {
        (self.loaded, self.stale_since, self.last_error) = (true, None, None);
    }

    /// Records that the cache's node cannot be read, as of `now`.
    pub(super) fn failed(&mut self, error: Error, now: Timestamp) {
        self.last_error = Some(error);
        self.stale_since.get_or_insert(now);
    }

    pub(super) fn close(&mut self, now: Timestamp) {
        self.closed = true;
        self.stale_since.get_or_insert(now);
    }

    pub(super) fn stale_for(&self, clock: &dyn Clock) -> Option<Duration> {
        self.stale_since.map(|since| clock.now().since(since))
    }
}

/// Returns a stream of the errors with which a node cannot be read, each when its kind changes. Ends with the
/// client.
pub(super) fn errors(status: watch::Receiver<Status>) -> SyncStream<Error> {
    let changes = changes(status, |status| status.last_error.as_ref().map(Error::kind));
    SyncStream::new(changes.filter_map(async |status| status.last_error))
}

/// Returns a stream of whether a cache is stale: the current state, then each change. Ends with the cache.
pub(super) fn staleness(status: watch::Receiver<Status>) -> SyncStream<bool> {
    let changes = changes(status, |status| status.stale_since.is_some());
    SyncStream::new(changes.map(|status| status.stale_since.is_some()))
}

/// Returns a stream of the current status, and of each later one with a different `key`.
fn changes<K: PartialEq + Send + 'static>(
    status: watch::Receiver<Status>,
    key: fn(&Status) -> K,
) -> impl Stream<Item = Status> + Send {
    stream::unfold((status, None), move |(mut status, reported)| async move {
        loop {
            let now = status.borrow_and_update().clone();
            let key = Some(key(&now));
            if reported != key {
                return Some((now, (status, key)));
            }
            if now.closed || status.changed().await.is_err() {
                return None;
            }
        }
    })
}

/// Waits until a cache is loaded, at most for `timeout`.
pub(super) async fn ready(
    shared: &Shared,
    path: &str,
    mut status: watch::Receiver<Status>,
    timeout: Duration,
) -> Result<(), Error> {
    let error = |kind| Error::new(kind, "watch").at(path);
    let settled = status.wait_for(|status| status.loaded || status.closed || status.last_error.is_some());
    match tokio::time::timeout_at(deadline(timeout), settled).await {
        Ok(Ok(status)) => match &*status {
            Status { closed: true, .. } => Err(error(shared.closed())),
            Status { loaded: false, last_error: Some(last_error), .. } => Err(last_error.clone()),
            _ => Ok(()),
        },
        Ok(Err(_)) => Err(error(shared.closed())),
        Err(_) => Err(timeout_error(shared, path)),
    }
}

/// Error of a wait for the servers that timed out.
pub(super) fn timeout_error(shared: &Shared, path: &str) -> Error {
    let error = Error::new(ErrorKind::Timeout, "watch").at(path);
    match shared.ensemble.link_status.no_link() {
        Some(cause) => error.caused_by(cause),
        None => error,
    }
}
