use super::cohort::Cohort;
use docent_core::planted;
use docent_core::recipe::Hold;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Wake, Waker};
use tokio_util::sync::WaitForCancellationFutureOwned;

/// Loss of a ticket that tasks share. The token of the ticket's hold wakes it, so no task has to wait for the
/// token.
pub(super) struct Loss {
    happened: AtomicBool,
    cohort: Weak<Cohort>,
}

impl Loss {
    pub(super) fn happened(&self) -> bool {
        self.happened.load(Ordering::Acquire)
    }
}

impl Wake for Loss {
    /// The token may be locked by its cancellation. Therefore nothing is dropped here, and the only action is
    /// to wake.
    fn wake(self: Arc<Self>) {
        if planted!(TurnAfterLoss) {
            return;
        }
        self.happened.store(true, Ordering::Release);
        if let Some(cohort) = self.cohort.upgrade() {
            cohort.wake_next();
        }
    }
}

/// Watch for the loss of a ticket. It must be dropped while the cohort is not locked.
pub(super) struct LossWatch {
    loss: Arc<Loss>,
    _cancelled: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl LossWatch {
    pub(super) fn new(hold: &Hold, cohort: Weak<Cohort>) -> Self {
        let loss = Arc::new(Loss { happened: AtomicBool::new(false), cohort });
        let waker = Waker::from(Arc::clone(&loss));
        let mut cancelled = Box::pin(hold.token().cancelled_owned());
        if cancelled.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
            waker.wake();
        }
        Self { loss, _cancelled: cancelled }
    }

    pub(super) fn loss(&self) -> &Arc<Loss> {
        &self.loss
    }

    pub(super) fn is_of(&self, loss: &Arc<Loss>) -> bool {
        Arc::ptr_eq(&self.loss, loss)
    }

    pub(super) fn has_fired(&self) -> bool {
        self.loss.happened()
    }
}
