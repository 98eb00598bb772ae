use crate::cleanup::{ClaimNode, Cleanup, LostCreates};
use crate::guard::{Held, HeldTable, LostReason};
use crate::kept::Witness;
use crate::operation::exact::Markers;
use crate::session::lease::Lease;
use crate::session::{Session, SessionEnd};
use crate::time::Clock;
use std::fmt;
use std::sync::Arc;

/// One session of a client with all that is tied to it. Everything that a session owns carries its
/// generation.
pub(crate) struct SessionGeneration {
    /// 1, 2, 3 …
    pub(crate) number: u64,
    pub(crate) session: Arc<dyn Session>,
    pub(crate) lease: Arc<Lease>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) cleanup: Cleanup,
    pub(crate) markers: Markers,
    /// Creates of tickets and markers that may be applied late.
    pub(crate) lost_creates: LostCreates,
    /// Shows to later sessions of the client whether this one lives.
    pub(crate) witness: Witness,
    /// Guards that this session holds.
    pub(crate) held: HeldTable,
    /// Largest request the servers take.
    pub(crate) max_request: usize,
}

impl SessionGeneration {
    pub(crate) fn new(
        number: u64,
        session: Arc<dyn Session>,
        lease: Arc<Lease>,
        clock: Arc<dyn Clock>,
        cleanup: Cleanup,
        max_request: usize,
    ) -> Self {
        Self {
            number,
            session,
            lease,
            clock,
            cleanup,
            markers: Markers::default(),
            lost_creates: LostCreates::default(),
            witness: Witness::new(),
            held: HeldTable::default(),
            max_request,
        }
    }

    /// The session is over: its guards are lost.
    pub(crate) fn end(&self, end: SessionEnd) {
        self.lease.end(end);
        let reason = self.lost_reason();
        for held in self.held.all() {
            held.lose(reason);
        }
    }

    pub(crate) fn ended(&self) -> Option<SessionEnd> {
        self.lease.ended()
    }

    /// Number of times that the link was lost.
    pub(crate) fn losses(&self) -> u64 {
        self.session.link().borrow().losses
    }

    /// Reason why a guard of this generation is lost once its lease is over.
    pub(crate) fn lost_reason(&self) -> LostReason {
        self.ended().map_or(LostReason::LeaseExpired, reason)
    }

    /// Adds a guard, unless the session has ended or its lease has run out.
    pub(crate) fn hold(
        self: &Arc<Self>,
        path: String,
        czxid: i64,
        recipe: &'static str,
    ) -> Option<Arc<Held>> {
        let mark = self.lease.mark(self.clock.now())?;
        let held = Arc::new(Held::new(Arc::clone(self), path, czxid, recipe, mark));
        self.add(&held).then_some(held)
    }

    /// As [`hold`](Self::hold), for the node of a claim.
    pub(crate) fn hold_claim(
        self: &Arc<Self>,
        node: &Arc<ClaimNode>,
        recipe: &'static str,
    ) -> Option<Arc<Held>> {
        let mark = self.lease.mark(self.clock.now())?;
        let held = Arc::new(Held::of_claim(node, recipe, mark));
        self.add(&held).then_some(held)
    }

    /// Reason why no guard may begin in this session, if there is one: its timeout is too short for a lease
    /// (decision 3).
    pub(crate) fn refuses_guards(&self, accept_short_lease: bool) -> Option<String> {
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

    /// Adds a guard to those of the session. False when the guard is lost already.
    pub(crate) fn add(&self, held: &Arc<Held>) -> bool {
        self.held.add(held);
        // The guard is added first, `ended` is read after it: `end` marks the end first and then loses the
        // guards it finds. So a guard that is added during `end` is seen by one of the two.
        let ended = self.ended().is_some();
        if ended {
            held.lose(self.lost_reason());
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
