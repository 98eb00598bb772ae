use crate::task::WakeFlag;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// A future that waits for something rare, in a task that often wakes for other reasons. It is polled only if
/// it was woken itself.
#[derive(Debug)]
pub(crate) struct PollOnWake<F> {
    future: Pin<Box<F>>,
    /// Waker of the future, rung when the future can make progress.
    bell: Arc<WakeFlag>,
    waker: Waker,
}

impl<F: Future> PollOnWake<F> {
    pub(crate) fn new(future: F) -> Self {
        let bell = Arc::new(WakeFlag::default());
        // Before its first poll nothing would wake the future, so the first poll is due immediately.
        bell.ring();
        Self { future: Box::pin(future), waker: Waker::from(Arc::clone(&bell)), bell }
    }
}

impl<F: Future> Future for PollOnWake<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        match this.bell.poll_rung(cx) {
            Poll::Ready(()) => this.future.as_mut().poll(&mut Context::from_waker(&this.waker)),
            Poll::Pending => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::poll;
    use std::future::poll_fn;
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
    use tokio::sync::Notify;

    #[tokio::test]
    async fn it_is_polled_when_it_is_woken_and_not_when_only_its_task_is() {
        let (notify, polls) = (Notify::new(), AtomicU32::new(0));
        let mut notified = Box::pin(notify.notified());
        let mut seldom = PollOnWake::new(poll_fn(|cx| {
            polls.fetch_add(1, Relaxed);
            notified.as_mut().poll(cx)
        }));
        for _ in 0..3 {
            assert!(poll!(&mut seldom).is_pending());
        }
        assert_eq!(polls.load(Relaxed), 1);
        notify.notify_waiters();
        seldom.await;
        assert_eq!(polls.load(Relaxed), 2);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_wake_of_the_inner_future_wakes_its_task() {
        let notify = Arc::new(Notify::new());
        let notifier = Arc::clone(&notify);
        let seldom = tokio::spawn(PollOnWake::new(async move { notify.notified().await }));
        notifier.notify_one();
        seldom.await.unwrap();
    }
}
