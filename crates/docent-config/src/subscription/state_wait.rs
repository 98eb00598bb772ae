use docent_core::Error;
use docent_core::recipe::SyncStream;
use futures_util::StreamExt;
use std::task::{Context, Poll, ready};
use tokio::sync::watch;
use tokio_util::sync::ReusableBoxFuture;

/// Wait of a subscription for the next state.
#[derive(Default)]
pub(crate) struct StateWait(Option<ReusableBoxFuture<'static, bool>>);

impl StateWait {
    /// The change that `look` finds in this state or one that follows; `None` when there is nothing in the
    /// last one.
    pub(crate) fn poll_found<S: Send + Sync + 'static, C>(
        &mut self,
        cx: &mut Context<'_>,
        state: &mut watch::Receiver<S>,
        mut look: impl FnMut(&mut watch::Receiver<S>) -> Option<C>,
    ) -> Poll<Option<C>> {
        loop {
            if let Some(found) = look(state) {
                return Poll::Ready(Some(found));
            }
            let changed = self.0.get_or_insert_with(|| ReusableBoxFuture::new(change(state.clone())));
            let goes_on = ready!(changed.poll(cx));
            self.0 = None;
            if !goes_on {
                return Poll::Ready(look(state));
            }
        }
    }
}

/// Waits for the state to change; false when it never will again.
async fn change<S>(mut state: watch::Receiver<S>) -> bool {
    state.changed().await.is_ok()
}

/// Item of a stream: the change that was `found`, else the next of `errors`. A closed client ends both.
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
