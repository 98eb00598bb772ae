use super::{Beginning, HoldState, HoldTable, LostReason};
use crate::cleanup::{Cleanup, LostCreates, Markers, OwnFolder, OwnedNode};
use crate::client::Recipe;
use crate::kept::Witness;
use crate::session::{SessionContext, SessionEnd, Watch};
use crate::time::Timestamp;
use std::fmt;
use std::ops::Deref;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

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
