use super::{Beginning, HoldState, LostReason};
use crate::cleanup::{Cleanup, LostCreates, Markers, OwnFolder, OwnedNode};
use crate::client::{Recipe, Stage};
use crate::kept::Witness;
use crate::session::{SessionContext, SessionEnd, Watch};
use crate::time::Timestamp;
use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::Notify;
use tokio_util::task::TaskTracker;

/// One session of a client with everything tied to it. Everything that a session owns carries its generation.
pub(crate) struct SessionGeneration {
    context: SessionContext,
    pub(crate) cleanup: Cleanup,
    /// Markers of the session's exact writes.
    pub(crate) markers: Markers,
    pub(crate) own_folder: OwnFolder,
    /// Creates of tickets and markers that may be applied late.
    pub(crate) lost_creates: LostCreates,
    /// Shows later sessions of the client whether this session is alive.
    pub(crate) witness: Witness,
    /// Guards that this session holds.
    pub(crate) held: HoldTable,
    /// Time of the last check that a ticket started to keep the lease fresh.
    checked: Mutex<Timestamp>,
    /// Number of lost links that the client's [`ConnectionStatus`](crate::ConnectionStatus) has counted.
    pub(crate) published_losses: AtomicU64,
}

impl Deref for SessionGeneration {
    type Target = SessionContext;

    fn deref(&self) -> &SessionContext {
        &self.context
    }
}

impl SessionGeneration {
    pub(crate) fn new(context: SessionContext, cleanup: Cleanup) -> Self {
        Self {
            context,
            cleanup,
            markers: Markers::default(),
            own_folder: OwnFolder::default(),
            lost_creates: LostCreates::default(),
            witness: Witness::default(),
            held: HoldTable::default(),
            checked: Mutex::default(),
            published_losses: AtomicU64::default(),
        }
    }

    /// Records that the session has ended. Its guards are lost.
    pub(crate) fn end(&self, end: SessionEnd) {
        self.lease.end(end);
        let reason = self.lost_reason();
        for held in self.held.all() {
            held.mark_lost(reason);
        }
    }

    /// Returns true if a check that keeps the lease fresh may begin, because none has begun for a `pause`.
    pub(crate) fn begin_check(&self, now: Timestamp, pause: Duration) -> bool {
        let mut checked = self.checked.lock().unwrap_or_else(PoisonError::into_inner);
        let begins = now >= *checked + pause;
        if begins {
            *checked = now;
        }
        begins
    }

    /// Returns the reason why a guard of this generation is lost once its lease has run out.
    pub(crate) fn lost_reason(&self) -> LostReason {
        self.ended().map_or(LostReason::LeaseExpired, reason)
    }

    /// Adds the guard that holds by `node`, unless the session has ended or its lease has run out. The
    /// `beginning` shows other clients since when the guard is held. `own` is a watch on the node that has
    /// been in place since the node's creation, if there is one.
    pub(crate) fn hold(
        self: &Arc<Self>,
        node: &Arc<OwnedNode>,
        recipe: &Recipe,
        beginning: Beginning,
        own: Option<Box<Watch>>,
    ) -> Option<Arc<HoldState>> {
        let mark = self.lease.mark(self.clock.now())?;
        let held = Arc::new(HoldState::new(
            Arc::clone(self),
            Arc::clone(node),
            recipe.clone(),
            mark,
            beginning,
            own,
        ));
        self.add(&held).then_some(held)
    }

    /// Returns the reason why no guard may begin in this session, if there is one: its timeout is unknown, or
    /// too short for a lease (decision 3).
    pub(crate) fn refuses_guards(&self, accept_short_lease: bool) -> Option<String> {
        if let Some(reason) = self.session.refuses_guards() {
            return Some(reason.to_owned());
        }
        let lease = &self.lease;
        if lease.is_empty() {
            let (timeout, margin) = (lease.timeout(), lease.margin());
            return Some(format!("session timeout {timeout:?} must be longer than its margin of {margin:?}"));
        }
        if accept_short_lease || !lease.is_short() {
            return None;
        }
        let (timeout, tick) = (lease.timeout(), lease.tick());
        Some(format!("session timeout {timeout:?} must be at least four server ticks of {tick:?}"))
    }

    /// Adds a guard to those of the session. Returns false if the guard is already lost.
    pub(crate) fn add(&self, held: &Arc<HoldState>) -> bool {
        self.held.add(held);
        // The order matters: this adds the guard and then reads `ended`, while `end` marks the end and then
        // loses the guards it finds. Therefore one of the two sees a guard that is added during `end`.
        let ended = self.ended().is_some();
        if ended {
            held.mark_lost(self.lost_reason());
        }
        !ended
    }
}

fn reason(end: SessionEnd) -> LostReason {
    match end {
        SessionEnd::Expired => LostReason::SessionExpired,
        SessionEnd::Abandoned | SessionEnd::RolledBack => LostReason::SessionAbandoned,
        SessionEnd::AuthFailed => LostReason::AuthFailed,
        SessionEnd::Closed => LostReason::Closed,
    }
}

impl fmt::Debug for SessionGeneration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionGeneration")
            .field("number", &self.number)
            .field("session", &self.session)
            .finish_non_exhaustive()
    }
}

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
        guards.retain(|held| held.recipe().kind.stage == stage);
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
