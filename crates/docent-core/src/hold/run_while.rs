use crate::guard::{Lost, LostReason};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

/// Polls `future` until it is done or a guard is lost; the clock is looked at before every poll.
pub(crate) async fn run_while<F: Future>(
    check: impl Fn() -> Result<(), Lost>,
    lost: impl Future<Output = LostReason>,
    future: F,
) -> Result<F::Output, Lost> {
    let (mut future, mut lost) = (pin!(future), pin!(lost));
    poll_fn(|cx| poll_while(&check, lost.as_mut(), future.as_mut(), cx)).await
}

/// One poll of [`run_while`].
pub(super) fn poll_while<F: Future, L: Future<Output = LostReason> + ?Sized>(
    check: impl Fn() -> Result<(), Lost>,
    lost: Pin<&mut L>,
    future: Pin<&mut F>,
    cx: &mut Context<'_>,
) -> Poll<Result<F::Output, Lost>> {
    check()?;
    if let Poll::Ready(reason) = lost.poll(cx) {
        return Poll::Ready(Err(Lost { reason }));
    }
    future.poll(cx).map(Ok)
}
