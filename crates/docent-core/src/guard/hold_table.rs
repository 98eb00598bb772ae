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
    lost: AtomicUsize,
    /// Writes in flight that begin or end guards, by the stage of the guards.
    under_way: [AtomicUsize; Stage::OF_GUARDS.len()],
    /// Counts guards until they are dropped.
    pub(super) alive: TaskTracker,
    /// Rung when a guard was added, but not for guards that follow within a moment.
    pub(crate) bell: Notify,
    /// Rung when a guard has ended, or a write that begins or ends guards.
    changed: Notify,
}

#[derive(Debug, Default)]
struct Guards {
    /// Guards that [`take_added`](HoldTable::take_added) has not returned yet.
    added: Vec<Weak<HoldState>>,
    /// True once the bell was rung for an added guard. Guards that follow soon do not ring it again.
    gathers: bool,
    known: Vec<Weak<HoldState>>,
}

/// A write in flight that begins or ends guards.
pub(crate) struct UnderWay<'a> {
    table: &'a HoldTable,
    stage: Stage,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.table.under_way(self.stage).fetch_sub(1, Ordering::SeqCst);
        self.table.changed.notify_waiters();
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
        self.changed.notify_waiters();
    }

    /// Counts a guard that was lost before it was released.
    pub(super) fn count_loss(&self) {
        self.lost.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of guards that were lost before they were released.
    pub(crate) fn lost(&self) -> usize {
        self.lost.load(Ordering::Relaxed)
    }

    /// Returns the guards of a shutdown stage of the client that are neither lost nor released.
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

    /// Counts a write that begins or ends guards of this stage, until the returned value is dropped. The
    /// outcome of the write must be known before the client's shutdown moves from this stage to the next.
    pub(crate) fn begin_write(&self, stage: Stage) -> UnderWay<'_> {
        self.under_way(stage).fetch_add(1, Ordering::SeqCst);
        UnderWay { table: self, stage }
    }

    /// Returns true if all guards of a stage are lost or released, and no write that begins or ends one is in
    /// flight.
    pub(crate) fn is_idle(&self, stage: Stage) -> bool {
        self.under_way(stage).load(Ordering::SeqCst) == 0 && self.of(stage).is_empty()
    }

    /// Waits until all guards of a stage are lost or released, and no write that begins or ends one is in
    /// flight.
    pub(crate) async fn wait_idle(&self, stage: Stage) {
        self.wait_until(|| self.is_idle(stage)).await;
    }

    /// Waits until all guards of a stage are lost or released. Does not wait for writes in flight.
    pub(crate) async fn wait_ended(&self, stage: Stage) {
        self.wait_until(|| self.of(stage).is_empty()).await;
    }

    async fn wait_until(&self, holds: impl Fn() -> bool) {
        loop {
            let changed = self.changed.notified();
            if holds() {
                return;
            }
            changed.await;
        }
    }

    /// Returns the number of guards that are neither lost nor released.
    pub(crate) fn live(&self) -> usize {
        self.live.load(Ordering::Relaxed)
    }

    /// Waits until every guard, including lost ones, was dropped. No guard may be added after this call.
    pub(crate) async fn all_dropped(&self) {
        self.alive.close();
        self.alive.wait().await;
    }

    /// Returns the guards that were added since the last call and have not ended. Also returns true if the
    /// caller must call again soon, because the bell is not rung for guards added shortly after these.
    pub(crate) fn take_added(&self) -> (Vec<Arc<HoldState>>, bool) {
        let mut guards = self.lock();
        let added: Vec<_> = guards.added.drain(..).collect();
        let gathers = !added.is_empty();
        guards.gathers = gathers;
        let fresh = added.iter().filter_map(live).collect();
        // Guards that have ended are dropped when the list would grow.
        if guards.known.len() + added.len() > guards.known.capacity() {
            guards.known.retain(|guard| live(guard).is_some());
        }
        guards.known.extend(added);
        (fresh, gathers)
    }

    /// Returns all guards that have not ended, oldest first.
    pub(crate) fn all(&self) -> Vec<Arc<HoldState>> {
        let mut guards = self.lock();
        guards.known.retain(|guard| live(guard).is_some());
        let Guards { added, known, .. } = &*guards;
        known.iter().chain(added).filter_map(live).collect()
    }
}

fn live(guard: &Weak<HoldState>) -> Option<Arc<HoldState>> {
    guard.upgrade().filter(|held| !held.has_ended())
}
