mod end;

use self::end::End;
use super::{Fence, LostReason, SessionGeneration};
use crate::cleanup::OwnedNode;
use crate::client::Recipe;
use crate::session::Watch;
use crate::session::lease::LeaseMark;
use crate::telemetry::Series;
use crate::time::Timestamp;
use bytes::Bytes;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// Data written into a contender's node to ask the contender to give up its place.
pub(crate) const REVOKE: &[u8] = b"__REVOKE__";

/// State of one guard: its node, whether it is still held, and the tokens that its loss cancels.
pub(crate) struct HoldState {
    pub(crate) generation: Arc<SessionGeneration>,
    pub(crate) node: Arc<OwnedNode>,
    pub(crate) fence: Fence,
    recipe: Recipe,
    since: Timestamp,
    beginning: Beginning,
    /// Watch that has been on the node since its creation, until the `Heartbeat` takes it.
    own: Mutex<Option<Box<Watch>>>,
    mark: LeaseMark,
    end: OnceLock<End>,
    /// Cancelled when the guard is lost.
    token: CancellationToken,
    /// Cancelled when another client asks for the place.
    revoked: CancellationToken,
    /// Tokens of the `HoldSet`s that contain this guard, each under its number. Cancelled when the guard is
    /// lost.
    sets: Mutex<Vec<(u64, CancellationToken)>>,
    /// Gauge that is 1 while the guard is held. On the heap, because few guards have one.
    gauge: OnceLock<Box<Series>>,
    /// State of the hold that lent this one.
    lender: Option<Arc<Self>>,
    /// State of the hold that this one lent last. Once there is one, metrics and log report the lent holds
    /// instead of this one.
    lent: Mutex<Option<Weak<Self>>>,
    _alive: TaskTrackerToken,
}

impl HoldState {
    pub(crate) fn new(
        generation: Arc<SessionGeneration>,
        node: Arc<OwnedNode>,
        recipe: Recipe,
        mark: LeaseMark,
        beginning: Beginning,
        own: Option<Box<Watch>>,
    ) -> Self {
        let since = generation.clock.now();
        let alive = generation.held.alive.token();
        let transaction =
            if planted!(FenceOfTheSession) { generation.number.cast_signed() } else { node.czxid };
        Self {
            generation,
            fence: Fence::from_czxid(transaction),
            node,
            recipe,
            since,
            beginning,
            own: Mutex::new(own),
            mark,
            end: OnceLock::new(),
            token: CancellationToken::new(),
            revoked: CancellationToken::new(),
            sets: Mutex::default(),
            gauge: OnceLock::new(),
            lender: None,
            lent: Mutex::default(),
            _alive: alive,
        }
    }

    /// Creates the state of a guard that owns `node` in addition to this guard's node. The new guard has the
    /// same fence and lease, is lost separately, and may outlive this one.
    pub(crate) fn beside(&self, node: Arc<OwnedNode>, beginning: Beginning) -> Self {
        let generation = Arc::clone(&self.generation);
        let mut beside = Self::new(generation, node, self.recipe.clone(), self.mark, beginning, None);
        if !planted!(DowngradeLosesFence) {
            beside.fence = self.fence;
        }
        beside
    }

    /// Creates the state of a hold that this one lends, with the same node, fence and lease. The lent hold is
    /// lost together with this one. If this one is already lost, the lent hold starts as lost, and metrics
    /// and log do not report it.
    pub(crate) fn lend(self: &Arc<Self>, waited: Duration) -> Arc<Self> {
        let lease = &self.generation.lease;
        let fresh = planted!(TurnAfterLoss).then(|| lease.mark(self.generation.clock.now())).flatten();
        let mut state = self.beside(Arc::clone(&self.node), Beginning::at_creation());
        state.mark = fresh.unwrap_or(self.mark);
        state.revoked = self.revoked.clone();
        state.lender = Some(Arc::clone(self));
        let state = Arc::new(state);
        let mut lent = self.lent.lock().unwrap_or_else(PoisonError::into_inner);
        // `mark_lost` stores the end before it takes this lock. A concurrent loss is therefore either visible
        // here, or finds the lent state.
        match self.end.get() {
            Some(end) if !planted!(TurnAfterLoss) => {
                let _ = state.end.set(*end);
                state.token.cancel();
            }
            _ => {
                let before = lent.replace(Arc::downgrade(&state));
                drop(lent);
                // The first lent hold was counted when this hold was acquired.
                if let Some(before) = before {
                    self.recipe.metrics.acquired(waited);
                    self.recipe.metrics.passed_on();
                    before.upgrade().into_iter().for_each(|before| before.take_back());
                }
            }
        }
        state
    }

    /// Returns the state of the hold that was lent last, or `None` if there was none.
    fn lent(&self) -> Option<Weak<Self>> {
        self.lent.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns when the current use of the hold began: that of the hold that was lent last, if there was one.
    /// Returns `None` between two lent holds.
    pub(crate) fn in_use_since(&self) -> Option<Timestamp> {
        self.lent().map_or(Some(self.since), |lent| Some(lent.upgrade()?.since))
    }

    /// Returns true for the state of a lent hold.
    pub(crate) fn is_lent(&self) -> bool {
        self.lender.is_some()
    }

    /// Takes the watch that has been on the node since its creation, if there is one.
    pub(crate) fn take_own_watch(&self) -> Option<Box<Watch>> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(crate) fn beginning(&self) -> &Beginning {
        &self.beginning
    }

    /// Returns the time since which the guard is held.
    pub(crate) fn since(&self) -> Timestamp {
        self.since
    }

    /// Returns the full path of the node.
    pub(crate) fn path(&self) -> &str {
        &self.node.path
    }

    pub(crate) fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    fn sets(&self) -> MutexGuard<'_, Vec<(u64, CancellationToken)>> {
        self.sets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Also cancels `token` when the guard is lost, until it leaves under the same `number`.
    pub(crate) fn join(&self, number: u64, token: &CancellationToken) {
        // The token is added before the check, so that a concurrent loss cancels it either in `mark_lost` or
        // here.
        self.sets().push((number, token.clone()));
        if let Some(End::Lost(..)) = self.end.get() {
            token.cancel();
        }
    }

    pub(crate) fn leave(&self, number: u64) {
        self.sets().retain(|(other, _)| *other != number);
    }

    /// Compares clock and generation without I/O; correct even after the process was frozen. Once this fails,
    /// it always fails.
    pub(crate) fn check(&self) -> Result<(), LostReason> {
        #[cfg(docent_planted)]
        if self.has_regained_lease() {
            return Ok(());
        }
        match self.end.get() {
            Some(End::Lost(reason, _)) => return Err(*reason),
            Some(End::Released) => return Err(LostReason::Released),
            None => {}
        }
        if planted!(CheckWithoutClock) {
            return Ok(());
        }
        // The clock decides, not the task that keeps the lease: after a pause of the process, the guard's
        // work may be polled before that task.
        self.check_clock()
    }

    /// Returns the time until the current end of the lease, or zero once the guard is lost or released.
    pub(crate) fn lease_left(&self) -> Duration {
        // Read the deadline first, because a deadline read after the check may be that of a later lease.
        let left = self.generation.lease.deadline().since(self.generation.clock.now());
        self.check().map_or(Duration::ZERO, |()| left)
    }

    /// Like [`check`](Self::check), for a guard that is neither lost nor released.
    pub(crate) fn check_clock(&self) -> Result<(), LostReason> {
        if self.generation.lease.holds(self.mark, self.generation.clock.now()) {
            return Ok(());
        }
        Err(self.mark_lost(self.generation.lost_reason()))
    }

    /// The defect [`LostUnLoses`](crate::planted::Planted::LostUnLoses).
    #[cfg(docent_planted)]
    fn has_regained_lease(&self) -> bool {
        planted!(LostUnLoses)
            && matches!(self.end.get(), Some(End::Lost(LostReason::LeaseExpired, _)))
            && self.generation.lease.mark(self.generation.clock.now()).is_some()
    }

    /// Sets `gauge` to 1 until the guard is lost or released. Only the first gauge is used.
    pub(crate) fn show_in(&self, gauge: Series) {
        gauge.set(1.0);
        let gauge = self.gauge.get_or_init(|| Box::new(gauge));
        // The guard may have ended before `ended` could see the gauge.
        if self.has_ended() {
            gauge.set(0.0);
        }
    }

    pub(crate) fn revoked(&self) -> &CancellationToken {
        &self.revoked
    }

    pub(crate) fn token(&self) -> &CancellationToken {
        &self.token
    }
}

impl Drop for HoldState {
    fn drop(&mut self) {
        // Neither released nor lost: a panic prevented the hold from being created.
        if self.end.get().is_none() && !self.is_lent() {
            self.generation.held.ended();
        }
        // The node is deleted with the guard, which fires the watch. Removing the watch would cost another
        // request.
        if let Some(watch) = self.take_own_watch() {
            watch.leave();
        }
    }
}

impl fmt::Debug for HoldState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, session) = (self.path(), self.generation.number);
        write!(f, "Hold({path:?}, fence {}, session {session}, ", self.fence)?;
        match self.end.get() {
            None => f.write_str("held)"),
            Some(End::Released) => f.write_str("released)"),
            Some(End::Lost(reason, _)) => write!(f, "lost: {reason})"),
        }
    }
}

/// Largest node data in bytes that is rewritten to record the beginning.
const LONGEST: usize = 1_024;

/// Records in the hold's own node when the hold began: the client rewrites the node's data unchanged,
/// provided the node was not modified since (decision 15). The servers store the time of that write.
#[derive(Debug)]
pub(crate) struct Beginning {
    data: Arc<Bytes>,
    /// True once nothing is left to write.
    settled: AtomicBool,
}

impl Beginning {
    /// Beginning of a hold whose node was created with `data` before the hold began.
    pub(crate) fn of(data: Arc<Bytes>) -> Self {
        let settled = AtomicBool::new(data.len() > LONGEST);
        Self { data, settled }
    }

    /// Beginning of a hold that began when its node was created, which the servers have recorded.
    pub(crate) fn at_creation() -> Self {
        Self { data: Arc::default(), settled: AtomicBool::new(true) }
    }

    /// Returns the data to write, or `None` once nothing is left to write.
    pub(crate) fn unrecorded(&self) -> Option<&Bytes> {
        (!self.settled.load(Ordering::Relaxed)).then_some(&self.data)
    }

    /// Marks the beginning as recorded, or as impossible to record.
    pub(crate) fn settle(&self) {
        self.settled.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Client;
    use crate::client::RecipeKind;

    static KIND: RecipeKind = RecipeKind::new("lock", "acquire");
    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test]
    async fn the_remaining_lease_follows_acknowledged_writes_and_is_zero_after_the_end() {
        let client = Client::builder("127.0.0.1:1").build().unwrap();
        let generation = client.shared().generation();
        let (lease, now) = (&generation.lease, generation.clock.now());
        // The lease is 20 s of 30 s.
        lease.attached(SECOND * 30, now);
        lease.renew(now - SECOND * 15, now - SECOND * 15, now);
        let mark = lease.mark(now).unwrap();
        let node = Arc::new(OwnedNode::by_name(Arc::clone(&generation), "/lock/a".to_owned(), 1));
        let held = HoldState::new(
            Arc::clone(&generation),
            node,
            client.shared().recipe(&KIND),
            mark,
            Beginning::at_creation(),
            None,
        );
        assert!(held.lease_left() <= SECOND * 5 && held.lease_left() > SECOND * 3);
        lease.renew(now, now, now);
        assert!(held.lease_left() > SECOND * 18, "{:?}", held.lease_left());
        held.release();
        assert_eq!(held.lease_left(), Duration::ZERO);
    }
}
