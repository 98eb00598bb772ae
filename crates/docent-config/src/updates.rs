//! Mechanisms that the subscriptions to a value, a folder and layers share.

use docent_core::Error;
use docent_core::recipe::SyncStream;
use futures_util::StreamExt;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll};
use tokio::sync::watch;
use tokio_util::sync::ReusableBoxFuture;

/// A subscription's wait for the next change of its feed's state, or the next error of a read.
pub(crate) struct Updates<S> {
    state: watch::Receiver<S>,
    waiting: Option<ReusableBoxFuture<'static, bool>>,
    errors: SyncStream<Error>,
}

impl<S> Updates<S> {
    pub(crate) fn new(state: &watch::Receiver<S>, errors: SyncStream<Error>) -> Self {
        Self { state: state.clone(), waiting: None, errors }
    }
}

impl<S: Send + Sync + 'static> Updates<S> {
    /// Returns the change that `check` finds in this state or a later one. While there is none, returns the
    /// next error. Returns `None` if the last state has no change: a closed client ends states and errors.
    pub(crate) fn poll_next<C>(
        &mut self,
        cx: &mut Context<'_>,
        mut check: impl FnMut(&mut watch::Receiver<S>) -> Option<C>,
    ) -> Poll<Option<Result<C, Error>>> {
        loop {
            if let Some(found) = check(&mut self.state) {
                return Poll::Ready(Some(Ok(found)));
            }
            let next = || ReusableBoxFuture::new(change(self.state.clone()));
            let Poll::Ready(is_open) = self.waiting.get_or_insert_with(next).poll(cx) else {
                return match self.errors.poll_next_unpin(cx) {
                    Poll::Ready(Some(error)) => Poll::Ready(Some(Err(error))),
                    _ => Poll::Pending,
                };
            };
            self.waiting = None;
            if !is_open {
                return Poll::Ready(check(&mut self.state).map(Ok));
            }
        }
    }
}

/// Waits for the state to change. Returns false if it can never change again.
async fn change<S>(mut state: watch::Receiver<S>) -> bool {
    state.changed().await.is_ok()
}

/// Returns the `running` feed and true, or the feed that `start` returns and false.
pub(crate) fn running_or<F>(
    running: &Mutex<Weak<F>>,
    start: impl FnOnce() -> Result<F, Error>,
) -> Result<(Arc<F>, bool), Error> {
    let mut running = running.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(feed) = running.upgrade() {
        return Ok((feed, true));
    }
    let feed = Arc::new(start()?);
    *running = Arc::downgrade(&feed);
    Ok((feed, false))
}
