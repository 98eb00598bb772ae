//! Futures that are polled so often and no more.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;

/// Polls `future` up to `polls` times, each when it asked for it; `None` when it was not done after that.
pub async fn poll_times<F: Future>(polls: usize, mut future: Pin<&mut F>) -> Option<F::Output> {
    let mut left = polls;
    poll_fn(|cx| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match future.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// As [`poll_times`]; then drops it.
pub async fn abandon_at<F: Future>(polls: usize, future: F) -> Option<F::Output> {
    poll_times(polls, pin!(future)).await
}
