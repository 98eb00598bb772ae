use crate::error::{Error, ErrorKind};
use crate::operation::Shared;
use crate::task::SyncStream;
use crate::time::{Clock, Timestamp, deadline};
use futures_util::stream;
use std::time::Duration;
use tokio::sync::watch;

/// State of a cache.
#[derive(Debug, Clone)]
pub(super) struct Status {
    /// True once it has been read.
    pub(super) loaded: bool,
    /// Time since when it may be out of date; `None` when it is up to date as far as the servers told.
    pub(super) stale_since: Option<Timestamp>,
    /// Error while its node cannot be read.
    pub(super) last_error: Option<Error>,
    pub(super) closed: bool,
}

impl Status {
    pub(super) fn new(clock: &dyn Clock) -> Self {
        Self { loaded: false, stale_since: Some(clock.now()), last_error: None, closed: false }
    }

    pub(super) fn stale_for(&self, clock: &dyn Clock) -> Option<Duration> {
        self.stale_since.map(|since| clock.now().since(since))
    }
}

/// Errors with which a node cannot be read, each when it is news. Ends with the client.
pub(super) fn errors(status: watch::Receiver<Status>) -> SyncStream<Error> {
    SyncStream::new(stream::unfold((status, None), |(mut status, mut told)| async move {
        loop {
            let Status { last_error, closed, .. } = status.borrow_and_update().clone();
            let kind = last_error.as_ref().map(Error::kind);
            if told != kind {
                told = kind;
                if let Some(error) = last_error {
                    return Some((error, (status, told)));
                }
            }
            if closed || status.changed().await.is_err() {
                return None;
            }
        }
    }))
}

/// Whether a cache is stale, each time that this is news. Ends with the cache.
pub(super) fn staleness(status: watch::Receiver<Status>) -> SyncStream<bool> {
    SyncStream::new(stream::unfold((status, None), |(mut status, told)| async move {
        loop {
            let Status { stale_since, closed, .. } = status.borrow_and_update().clone();
            let is_stale = stale_since.is_some();
            if told != Some(is_stale) {
                return Some((is_stale, (status, Some(is_stale))));
            }
            if closed || status.changed().await.is_err() {
                return None;
            }
        }
    }))
}

/// Waits until a cache has been read, at most for `timeout`.
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

/// The error of a wait for the servers that took too long.
pub(super) fn timeout_error(shared: &Shared, path: &str) -> Error {
    let error = Error::new(ErrorKind::Timeout, "watch").at(path);
    match shared.ensemble.last_error.why() {
        Some(why) => error.caused_by(why),
        None => error,
    }
}
