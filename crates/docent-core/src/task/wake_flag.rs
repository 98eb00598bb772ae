use futures_util::task::AtomicWaker;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::AcqRel;
use std::task::{Context, Poll, Wake, Waker};

/// Wakes the single listening task. Rings that were not yet received count as one, even if no task was
/// listening.
#[derive(Debug, Default)]
pub(crate) struct WakeFlag {
    rung: AtomicBool,
    listener: AtomicWaker,
}

impl WakeFlag {
    pub(crate) fn ring(&self) {
        // Only the first ring wakes the listener, which receives all rings up to that time together.
        if !self.rung.swap(true, AcqRel) {
            self.listener.wake();
        }
    }

    /// Returns ready once for all rings since the last time it was ready.
    pub(crate) fn poll_rung(&self, cx: &mut Context<'_>) -> Poll<()> {
        // The waker is registered before `rung` is checked, so that a ring in between wakes the task.
        self.listener.register(cx.waker());
        if self.rung.swap(false, AcqRel) { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// Allows a bell to be a task's waker: waking it rings the bell.
impl Wake for WakeFlag {
    fn wake(self: Arc<Self>) {
        self.ring();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.ring();
    }
}

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
    use std::sync::atomic::AtomicU32;
    use std::sync::atomic::Ordering::Relaxed;
    use tokio::sync::Notify;

    #[tokio::test]
    async fn rings_before_the_first_poll_are_delivered_once() {
        let bell = WakeFlag::default();
        bell.ring();
        bell.ring();
        poll_fn(|cx| bell.poll_rung(cx)).await;
        assert!(futures_util::poll!(poll_fn(|cx| bell.poll_rung(cx))).is_pending());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn no_ring_of_another_thread_is_lost() {
        let bells = Arc::new([WakeFlag::default(), WakeFlag::default()]);
        let ringing = Arc::clone(&bells);
        let echo = tokio::spawn(async move {
            for _ in 0..10_000 {
                poll_fn(|cx| ringing[0].poll_rung(cx)).await;
                ringing[1].ring();
            }
        });
        for _ in 0..10_000 {
            bells[0].ring();
            poll_fn(|cx| bells[1].poll_rung(cx)).await;
        }
        echo.await.unwrap();
    }

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
