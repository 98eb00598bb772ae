use crate::guard::{Lost, LostReason};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

/// Polls `future` until it completes or a guard is lost; checks the clock before every poll.
pub(super) async fn run_while<F: Future>(
    check: impl Fn() -> Result<(), Lost>,
    lost: impl Future<Output = LostReason>,
    future: F,
) -> Result<F::Output, Lost> {
    let (mut future, mut lost) = (pin!(future), pin!(lost));
    poll_fn(|cx| {
        check()?;
        if let Poll::Ready(reason) = lost.as_mut().poll(cx) {
            return Poll::Ready(Err(Lost { reason }));
        }
        future.as_mut().poll(cx).map(Ok)
    })
    .await
}
