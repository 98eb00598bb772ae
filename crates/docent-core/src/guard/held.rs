use crate::cleanup::ClaimNode;
use crate::client::epoch::Epoch;
use crate::guard::Fence;
use crate::guard::LostReason;
use crate::session::lease::LeaseMark;
use crate::session::{Cause, Lane};
use crate::telemetry;
use crate::time::Timestamp;
use docent_proto::Request;
use std::fmt;
use std::future::pending;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// What is written into a contender's node to ask it to give up its place.
pub(crate) const REVOKE: &[u8] = b"__REVOKE__";

/// A node that a guard holds: whether it still does, and who is to be told when not.
pub(crate) struct Held {
    pub(crate) epoch: Arc<Epoch>,
    /// Full path of the node.
    pub(crate) path: String,
    pub(crate) fence: Fence,
    /// Which recipe it belongs to.
    recipe: &'static str,
    since: Timestamp,
    mark: LeaseMark,
    over: OnceLock<Over>,
    /// Cancelled when lost.
    token: CancellationToken,
    /// Cancelled when somebody asked for the place.
    revoked: CancellationToken,
    /// Set when the node is that of a claim, which may be deleted in its own session only.
    claim: Option<Arc<ClaimNode>>,
    /// Cancelled when lost as well: the tokens of sets that this is in, each under a number.
    sets: Mutex<Vec<(u64, CancellationToken)>>,
    _alive: TaskTrackerToken,
}

/// How a guard ended: released or lost, whichever came first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Over {
    Released,
    /// Why, and when that was noticed.
    Lost(LostReason, Timestamp),
}

impl Held {
    pub(crate) fn new(
        epoch: Arc<Epoch>,
        path: String,
        czxid: i64,
        recipe: &'static str,
        mark: LeaseMark,
    ) -> Self {
        let since = epoch.clock.now();
        let alive = epoch.held.alive.token();
        Self {
            epoch,
            path,
            fence: Fence::from_czxid(czxid),
            recipe,
            since,
            mark,
            over: OnceLock::new(),
            token: CancellationToken::new(),
            revoked: CancellationToken::new(),
            claim: None,
            sets: Mutex::default(),
            _alive: alive,
        }
    }

    /// One that holds by a claim.
    pub(crate) fn of_claim(node: &Arc<ClaimNode>, recipe: &'static str, mark: LeaseMark) -> Self {
        let held = Self::new(Arc::clone(&node.epoch), node.path.clone(), node.czxid, recipe, mark);
        Self { claim: Some(Arc::clone(node)), ..held }
    }

    /// What holds at the node `path` from now on, in place of this: with the same fence, lease and token.
    pub(crate) fn successor(&self, path: String) -> Self {
        let alive = self.epoch.held.alive.token();
        Self {
            epoch: Arc::clone(&self.epoch),
            path,
            fence: self.fence,
            recipe: self.recipe,
            since: self.epoch.clock.now(),
            mark: self.mark,
            over: OnceLock::new(),
            token: self.token.clone(),
            revoked: CancellationToken::new(),
            claim: self.claim.clone(),
            sets: Mutex::default(),
            _alive: alive,
        }
    }

    fn sets(&self) -> MutexGuard<'_, Vec<(u64, CancellationToken)>> {
        self.sets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cancels `token`, too, when this is lost, until it leaves under the same `number`.
    pub(crate) fn join(&self, number: u64, token: &CancellationToken) {
        self.sets().push((number, token.clone()));
        if let Some(Over::Lost(..)) = self.over.get() {
            token.cancel();
        }
    }

    pub(crate) fn leave(&self, number: u64) {
        self.sets().retain(|(other, _)| *other != number);
    }

    /// Clock and epoch say so: no I/O, and right even after the process was frozen. Once false, always false.
    pub(crate) fn check(&self) -> Result<(), LostReason> {
        #[cfg(docent_planted)]
        if self.has_lease_again() {
            return Ok(());
        }
        match self.over.get() {
            Some(Over::Lost(reason, _)) => return Err(*reason),
            Some(Over::Released) => return Err(LostReason::Released),
            None => {}
        }
        if planted!(CheckWithoutClock) {
            return Ok(());
        }
        self.check_clock()
    }

    /// As [`check`](Self::check), for a guard that is not over.
    pub(crate) fn check_clock(&self) -> Result<(), LostReason> {
        if self.epoch.lease.holds(self.mark, self.epoch.clock.now()) {
            return Ok(());
        }
        Err(self.lose(self.epoch.lost_reason()))
    }

    /// The defect [`LostUnLoses`](crate::planted::Planted::LostUnLoses).
    #[cfg(docent_planted)]
    fn has_lease_again(&self) -> bool {
        planted!(LostUnLoses)
            && matches!(self.over.get(), Some(Over::Lost(LostReason::LeaseExpired, _)))
            && self.epoch.lease.mark(self.epoch.clock.now()).is_some()
    }

    /// Marks it lost, unless it was released before. The first reason stays; it is returned.
    pub(crate) fn lose(&self, reason: LostReason) -> LostReason {
        if self.over.set(Over::Lost(reason, self.epoch.clock.now())).is_ok() {
            tracing::warn!(path = %self.path, epoch = self.epoch.number, %reason, "guard is lost");
            self.token.cancel();
            self.sets().iter().for_each(|(_, token)| token.cancel());
            self.ended(Some(reason));
            if reason == LostReason::LeaseExpired {
                if planted!(SessionClosedAtLoss) {
                    std::mem::forget(self.epoch.session.submit(Request::CloseSession, Lane::Cleanup));
                }
                // The session may live on. The holder's work gets a margin to stop; then others get their turn.
                let margin =
                    if planted!(NodeDeletedAtLoss) { Duration::ZERO } else { self.epoch.lease.margin() };
                match &self.claim {
                    None => self.epoch.cleanup.delete_later(&self.epoch, self.path.clone(), margin),
                    Some(node) => self.epoch.cleanup.release_later(node, margin),
                }
            }
        }
        match self.over.get() {
            Some(Over::Lost(reason, _)) => *reason,
            _ => reason,
        }
    }

    /// Finds out, where others may make a node at the path of this one's once it is gone, whether it is still the same. Known without
    /// a request unless a link was lost since it was last seen.
    ///
    /// # Errors
    /// `Err(Ok(reason))` when it is lost; `Err(Err(cause))` when the session ended before that was found out.
    pub(crate) async fn confirm(&self) -> Result<(), Result<LostReason, Cause>> {
        let Some(node) = &self.claim else { return Ok(()) };
        match node.confirm().await {
            Ok(true) => Ok(()),
            Ok(false) => Err(Ok(self.lose(LostReason::NodeDeleted))),
            Err(cause) => Err(Err(cause)),
        }
    }

    /// As [`confirm`](Self::confirm), and looks in any case.
    pub(crate) async fn look(&self) -> Result<(), Result<LostReason, Cause>> {
        if let Some(node) = &self.claim {
            node.doubt();
        }
        self.confirm().await
    }

    /// True when it holds by a claim, at a path that others may use once it is gone.
    pub(crate) fn is_claim(&self) -> bool {
        self.claim.is_some()
    }

    /// True when its node is known to have been the same after the link had been lost that often.
    pub(crate) fn is_confirmed_at(&self, losses: u64) -> bool {
        self.claim.as_ref().is_none_or(|node| node.is_confirmed_at(losses))
    }

    /// False when the node with this `czxid`, at the path of this one's, is another.
    pub(crate) fn is_same(&self, czxid: i64) -> bool {
        planted!(ClaimUnchecked) || self.claim.as_ref().is_none_or(|node| node.czxid == czxid)
    }

    /// The guard was released: its node is being deleted by us. Not lost from now on.
    pub(crate) fn release(&self) {
        let _ = self.hand_over();
    }

    /// As [`release`](Self::release); the reason when it was lost before. In one step: what [succeeds](Self::successor) it has the
    /// same token, which no loss of this may cancel afterwards.
    pub(crate) fn hand_over(&self) -> Result<(), LostReason> {
        match self.over.set(Over::Released) {
            Ok(()) => {
                self.ended(None);
                Ok(())
            }
            Err(_) => match self.over.get() {
                Some(Over::Lost(reason, _)) => Err(*reason),
                _ => Ok(()),
            },
        }
    }

    /// As [`release`](Self::release), and those who share it are told.
    pub(crate) fn give_up(&self) {
        self.release();
        self.token.cancel();
    }

    /// Until when work under it may still be polled, `grace` after the lease ran out. `None` when somebody else may have its place
    /// already, or when it ran out so long ago that another lease began.
    pub(crate) fn grace_end(&self, grace: Duration) -> Option<Timestamp> {
        match self.over.get() {
            Some(Over::Lost(LostReason::LeaseExpired, noticed)) => {
                // An acknowledgement that was taken for one in time may have moved the end since.
                let end = self.epoch.lease.lapsed_at(self.mark)?.min(*noticed);
                Some(end + grace.min(self.epoch.lease.margin()))
            }
            _ => None,
        }
    }

    fn ended(&self, lost: Option<LostReason>) {
        self.epoch.held.one_less();
        telemetry::over(self.recipe, self.epoch.clock.now().since(self.since), lost);
    }

    /// Why it was lost, if it was.
    pub(crate) fn lost_reason(&self) -> Option<LostReason> {
        match self.over.get() {
            Some(Over::Lost(reason, _)) => Some(*reason),
            _ => None,
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over.get().is_some()
    }

    pub(crate) fn revoked(&self) -> &CancellationToken {
        &self.revoked
    }

    pub(crate) fn token(&self) -> &CancellationToken {
        &self.token
    }

    /// Resolves with the reason when lost, or given up by another who shares it: also when nobody runs any more who would tell.
    pub(crate) async fn lost(&self) -> LostReason {
        tokio::select! {
            biased;
            () = self.token.cancelled() => {}
            () = self.lapsed() => {}
        }
        match self.over.get() {
            Some(Over::Lost(reason, _)) => *reason,
            // The token is cancelled when it is lost or given up.
            _ => LostReason::Released,
        }
    }
}

impl Held {
    /// Resolves when the lease has run out, going by the clock and a timer of whoever waits: the keeper may be stuck on a thread that
    /// is blocked. Never when it was released before that.
    async fn lapsed(&self) {
        // Without a runtime there are no timers.
        while !self.is_over() && Handle::try_current().is_ok() {
            let left = self.epoch.lease.deadline().since(self.epoch.clock.now());
            tokio::time::sleep(left).await;
            if !self.is_over() && self.check_clock().is_err() {
                return;
            }
        }
        pending::<()>().await;
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held")
            .field("path", &self.path)
            .field("fence", &self.fence)
            .field("epoch", &self.epoch.number)
            .field("over", &self.over.get())
            .finish_non_exhaustive()
    }
}

/// The guards of one epoch, for the keeper that keeps their lease.
#[derive(Debug, Default)]
pub(crate) struct HeldTable {
    guards: Mutex<Guards>,
    live: AtomicUsize,
    /// Counts guards until they are dropped.
    alive: TaskTracker,
    /// Rung when a guard was added.
    pub(crate) bell: Notify,
}

#[derive(Debug, Default)]
struct Guards {
    /// Not handed to the keeper yet.
    added: Vec<Weak<Held>>,
    known: Vec<Weak<Held>>,
}

impl HeldTable {
    fn lock(&self) -> MutexGuard<'_, Guards> {
        self.guards.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, held: &Arc<Held>) {
        self.live.fetch_add(1, Ordering::Relaxed);
        self.lock().added.push(Arc::downgrade(held));
        self.bell.notify_one();
    }

    fn one_less(&self) {
        self.live.fetch_sub(1, Ordering::Relaxed);
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

    /// Guards that were added since the last call and are not over.
    pub(crate) fn take_added(&self) -> Vec<Arc<Held>> {
        let mut guards = self.lock();
        let added: Vec<_> = guards.added.drain(..).collect();
        let fresh = added.iter().filter_map(live).collect();
        // Those that are over are forgotten when the list would grow.
        if guards.known.len() + added.len() > guards.known.capacity() {
            guards.known.retain(|guard| live(guard).is_some());
        }
        guards.known.extend(added);
        fresh
    }

    /// All guards that are not over, oldest first.
    pub(crate) fn all(&self) -> Vec<Arc<Held>> {
        let mut guards = self.lock();
        guards.known.retain(|guard| live(guard).is_some());
        let Guards { added, known } = &*guards;
        known.iter().chain(added).filter_map(live).collect()
    }
}

fn live(guard: &Weak<Held>) -> Option<Arc<Held>> {
    guard.upgrade().filter(|held| !held.is_over())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Client;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test]
    async fn a_grace_runs_from_the_end_that_was_noticed_also_if_the_lease_is_renewed_at_that_moment() {
        let client = Client::builder("127.0.0.1:1").build().unwrap();
        let epoch = client.core().epoch();
        let (lease, now) = (&epoch.lease, epoch.clock.now());
        // The lease is 20 s of 30 s, and has just run out.
        lease.attached(SECOND * 30, now - SECOND * 20);
        let then = now - SECOND * 20;
        lease.renew(then, then, then);
        let mark = lease.mark(now - SECOND).unwrap();
        let held = Held::new(Arc::clone(&epoch), "/lock/a".to_owned(), 1, "lock", mark);
        assert_eq!(held.check(), Err(LostReason::LeaseExpired));
        assert_eq!(held.grace_end(SECOND), Some(now + SECOND));
        // The driver looked at its clock just before the end, and came to renew the lease just after the guard was lost.
        lease.renew(now - SECOND, now - SECOND, now - Duration::from_nanos(1));
        assert!(held.grace_end(SECOND) <= Some(epoch.clock.now() + SECOND));
        assert_eq!(held.check(), Err(LostReason::LeaseExpired));
    }
}
