use futures_util::task::AtomicWaker;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::AcqRel};
use std::task::{Context, Poll, Wake};

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

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;

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
}
