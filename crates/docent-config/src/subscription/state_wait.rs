use docent_core::Error;
use docent_core::recipe::SyncStream;
use futures_util::StreamExt;
use std::task::{Context, Poll, ready};
use tokio::sync::watch;
use tokio_util::sync::ReusableBoxFuture;

/// A subscription's wait for the next state.
#[derive(Default)]
pub(crate) struct StateWait(Option<ReusableBoxFuture<'static, bool>>);

impl StateWait {
    /// Returns the change that `check` finds in this state or a later one, or `None` if the last state has
    /// none.
    pub(crate) fn poll_found<S: Send + Sync + 'static, C>(
        &mut self,
        cx: &mut Context<'_>,
        state: &mut watch::Receiver<S>,
        mut check: impl FnMut(&mut watch::Receiver<S>) -> Option<C>,
    ) -> Poll<Option<C>> {
        loop {
            if let Some(found) = check(state) {
                return Poll::Ready(Some(found));
            }
            let changed = self.0.get_or_insert_with(|| ReusableBoxFuture::new(change(state.clone())));
            let is_open = ready!(changed.poll(cx));
            self.0 = None;
            if !is_open {
                return Poll::Ready(check(state));
            }
        }
    }
}

/// Waits for the state to change. Returns false if it can never change again.
async fn change<S>(mut state: watch::Receiver<S>) -> bool {
    state.changed().await.is_ok()
}

/// Returns the next item of a stream: the change that was `found`, otherwise the next of `errors`. A closed
/// client ends both.
pub(crate) fn or_error<C>(
    found: Poll<Option<Result<C, Error>>>,
    errors: &mut SyncStream<Error>,
    cx: &mut Context<'_>,
) -> Poll<Option<Result<C, Error>>> {
    match found {
        Poll::Pending => match errors.poll_next_unpin(cx) {
            Poll::Ready(Some(error)) => Poll::Ready(Some(Err(error))),
            _ => Poll::Pending,
        },
        found => found,
    }
}
