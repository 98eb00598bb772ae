use super::HoldState;
use crate::client::Stage;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::sync::Notify;
use tokio_util::task::TaskTracker;

/// Guards of one generation, for the `Heartbeat` that keeps their lease.
#[derive(Debug, Default)]
pub(crate) struct HoldTable {
    guards: Mutex<Guards>,
    live: AtomicUsize,
    /// Writes under way that begin or end guards, by the stage of those.
    under_way: [AtomicUsize; Stage::OF_GUARDS.len()],
    /// Counts guards until they are dropped.
    pub(super) alive: TaskTracker,
    /// Rung when a guard was added, but not for those that follow it within a moment.
    pub(crate) bell: Notify,
    /// Rung when a guard ended, or a write that begins or ends guards.
    over: Notify,
}

#[derive(Debug, Default)]
struct Guards {
    /// Guards that [`take_added`](HoldTable::take_added) has not handed out yet.
    added: Vec<Weak<HoldState>>,
    /// True once the bell was rung for one that was added: it is not rung for those that follow soon.
    gathers: bool,
    known: Vec<Weak<HoldState>>,
}

/// A write under way that begins or ends guards.
pub(crate) struct UnderWay<'a> {
    table: &'a HoldTable,
    stage: Stage,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.table.under_way(self.stage).fetch_sub(1, Ordering::SeqCst);
        self.table.over.notify_waiters();
    }
}

impl HoldTable {
    fn lock(&self) -> MutexGuard<'_, Guards> {
        self.guards.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, held: &Arc<HoldState>) {
        self.live.fetch_add(1, Ordering::Relaxed);
        let is_first = {
            let mut guards = self.lock();
            guards.added.push(Arc::downgrade(held));
            !std::mem::replace(&mut guards.gathers, true)
        };
        if is_first {
            self.bell.notify_one();
        }
    }

    pub(super) fn ended(&self) {
        self.live.fetch_sub(1, Ordering::Relaxed);
        self.over.notify_waiters();
    }

    /// Guards of a stage of the client's shutdown that are neither lost nor released.
    pub(crate) fn of(&self, stage: Stage) -> Vec<Arc<HoldState>> {
        let mut guards = self.all();
        guards.retain(|held| held.recipe().stage() == stage);
        guards
    }

    fn under_way(&self, stage: Stage) -> &AtomicUsize {
        let [elections, deliveries, locks] = &self.under_way;
        match stage {
            Stage::Elections => elections,
            Stage::Deliveries => deliveries,
            _ => locks,
        }
    }

    /// Counts a write that begins or ends guards of this stage, until the value that it returns is dropped:
    /// it is told by the servers before the client's shutdown goes on from their stage to the next.
    pub(crate) fn begin_write(&self, stage: Stage) -> UnderWay<'_> {
        self.under_way(stage).fetch_add(1, Ordering::SeqCst);
        UnderWay { table: self, stage }
    }

    /// True when all guards of a stage are lost or released, and no write that begins or ends one is under
    /// way.
    pub(crate) fn is_over(&self, stage: Stage) -> bool {
        self.under_way(stage).load(Ordering::SeqCst) == 0 && self.of(stage).is_empty()
    }

    /// Waits until all guards of a stage are lost or released, and no write that begins or ends one is under
    /// way.
    pub(crate) async fn over(&self, stage: Stage) {
        loop {
            let over = self.over.notified();
            if self.is_over(stage) {
                return;
            }
            over.await;
        }
    }

    /// Guards that are neither lost nor released.
    pub(crate) fn live(&self) -> usize {
        self.live.load(Ordering::Relaxed)
    }

    /// Waits until every guard, lost ones too, was dropped. No guard may be added after this was called.
    pub(crate) async fn all_dropped(&self) {
        self.alive.close();
        self.alive.wait().await;
    }

    /// Guards that were added since the last call and are not over. True with them when the caller shall come
    /// for more before long: the bell is not rung for those.
    pub(crate) fn take_added(&self) -> (Vec<Arc<HoldState>>, bool) {
        let mut guards = self.lock();
        let added: Vec<_> = guards.added.drain(..).collect();
        let gathers = !added.is_empty();
        guards.gathers = gathers;
        let fresh = added.iter().filter_map(live).collect();
        // Guards that are over are forgotten when the list would grow.
        if guards.known.len() + added.len() > guards.known.capacity() {
            guards.known.retain(|guard| live(guard).is_some());
        }
        guards.known.extend(added);
        (fresh, gathers)
    }

    /// All guards that are not over, oldest first.
    pub(crate) fn all(&self) -> Vec<Arc<HoldState>> {
        let mut guards = self.lock();
        guards.known.retain(|guard| live(guard).is_some());
        let Guards { added, known, .. } = &*guards;
        known.iter().chain(added).filter_map(live).collect()
    }
}

fn live(guard: &Weak<HoldState>) -> Option<Arc<HoldState>> {
    guard.upgrade().filter(|held| !held.is_over())
}
