use crate::epoch::Epoch;
use crate::fence::Fence;
use crate::lease::LeaseMark;
use crate::lost::LostReason;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// A node that a guard holds: whether it still does, and who is to be told when not.
pub(crate) struct Held {
    pub(crate) epoch: Arc<Epoch>,
    /// Full path of the node.
    pub(crate) path: String,
    pub(crate) fence: Fence,
    mark: LeaseMark,
    lost: OnceLock<LostReason>,
    /// Cancelled when lost.
    token: CancellationToken,
    /// Cancelled when lost or released.
    over: CancellationToken,
}

impl Held {
    pub(crate) fn new(epoch: Arc<Epoch>, path: String, czxid: i64, mark: LeaseMark) -> Self {
        let over = CancellationToken::new();
        Self {
            epoch,
            path,
            fence: Fence::from_czxid(czxid),
            mark,
            lost: OnceLock::new(),
            token: CancellationToken::new(),
            over,
        }
    }

    /// Clock and epoch say so: no I/O, and right even after the process was frozen. Once false, always false.
    pub(crate) fn check(&self) -> Result<(), LostReason> {
        if let Some(reason) = self.lost.get() {
            return Err(*reason);
        }
        if self.epoch.lease.holds(self.mark, self.epoch.clock.now()) {
            return Ok(());
        }
        Err(self.lose(self.epoch.lost_reason()))
    }

    /// Marks it lost. The first reason stays; it is returned.
    pub(crate) fn lose(&self, reason: LostReason) -> LostReason {
        if self.lost.set(reason).is_ok() {
            if !self.over.is_cancelled() {
                tracing::warn!(path = %self.path, epoch = self.epoch.number, %reason, "guard is lost");
            }
            self.token.cancel();
            self.over.cancel();
            if reason == LostReason::LeaseExpired {
                // The session may live on. The holder's work gets a margin to stop; then others get their turn.
                let margin = self.epoch.lease.margin();
                self.epoch.cleanup.delete_later(&self.epoch, self.path.clone(), margin);
            }
        }
        *self.lost.get().unwrap_or(&reason)
    }

    /// The guard was released: its node is being deleted by us.
    pub(crate) fn release(&self) {
        self.over.cancel();
    }

    pub(crate) fn token(&self) -> &CancellationToken {
        &self.token
    }

    pub(crate) fn over(&self) -> &CancellationToken {
        &self.over
    }

    /// Resolves with the reason when lost.
    pub(crate) async fn lost(&self) -> LostReason {
        self.token.cancelled().await;
        self.lost.get().copied().unwrap_or(LostReason::LeaseExpired)
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held")
            .field("path", &self.path)
            .field("fence", &self.fence)
            .field("epoch", &self.epoch.number)
            .field("lost", &self.lost.get())
            .finish_non_exhaustive()
    }
}

/// The guards of one epoch, for the keeper that keeps their lease.
#[derive(Debug, Default)]
pub(crate) struct HeldTable {
    guards: Mutex<Vec<Weak<Held>>>,
    /// Rung when a guard was added.
    pub(crate) bell: Notify,
}

impl HeldTable {
    pub(crate) fn add(&self, held: &Arc<Held>) {
        self.guards.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(held));
        self.bell.notify_one();
    }

    /// Guards neither lost nor released, oldest first. Forgets the others.
    pub(crate) fn all(&self) -> Vec<Arc<Held>> {
        let mut guards = self.guards.lock().unwrap_or_else(PoisonError::into_inner);
        let mut live = Vec::with_capacity(guards.len());
        guards.retain(|guard| match guard.upgrade() {
            Some(held) if !held.over.is_cancelled() => {
                live.push(held);
                true
            }
            _ => false,
        });
        live
    }
}
