use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

/// Polls `future` up to `polls` times, each when it asked for it, then drops it; `None` when it was not done by then.
pub(super) async fn abandon_at<F: Future>(polls: u32, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut left = polls.max(1);
    poll_fn(|cx| {
        left -= 1;
        match future.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}
