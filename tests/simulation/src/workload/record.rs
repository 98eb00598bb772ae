use super::ClientCtx;
use docent_checker::{Attempt, AttemptId, CallId, Ending, EventKind, FaultKind, Grant, Handle, Role, Turn};
use std::cell::Cell;
use std::time::Duration;

/// Records one acquire and its outcome, with an attempt for each requested resource.
///
/// # On drop
/// Records an attempt in progress as cancelled, and one that holds as dropped. Records nothing if its process
/// dies.
#[derive(Debug)]
pub(super) struct Record {
    ctx: ClientCtx,
    parts: Vec<Want>,
    phase: Cell<Phase>,
    /// Number of handles besides the last one.
    inner_handles: Cell<u32>,
}

/// One requested resource.
#[derive(Debug)]
pub(super) struct Want {
    pub(super) id: AttemptId,
    pub(super) path: String,
    role: Role,
    /// The fence of the grant, if it has one.
    pub(super) fence: Cell<Option<u64>>,
}

/// A grant: its node and its fence, if it has one.
pub(super) type Granted = (String, Option<u64>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Trying,
    Holding,
    Over,
}

impl Record {
    /// Records that an attempt begins.
    pub(super) fn begin(ctx: &ClientCtx, path: &str, role: Role, patience: Option<Duration>) -> Self {
        Self::begin_all(ctx, [(path.to_owned(), role)], patience)
    }

    /// Records that the attempts of one acquire begin.
    pub(super) fn begin_all(
        ctx: &ClientCtx,
        wanted: impl IntoIterator<Item = (String, Role)>,
        patience: Option<Duration>,
    ) -> Self {
        let begin = |(path, role): (String, Role)| {
            let id = ctx.recorder.attempt();
            ctx.recorder.write(EventKind::Began(Attempt { id, path: path.clone(), role, patience }));
            Want { id, path, role, fence: Cell::new(None) }
        };
        let parts: Vec<Want> = wanted.into_iter().map(begin).collect();
        if parts.len() > 1 {
            ctx.recorder.write(EventKind::Together(parts.iter().map(|want| want.id).collect()));
        }
        Self { ctx: ctx.clone(), parts, phase: Cell::new(Phase::Trying), inner_handles: Cell::new(0) }
    }

    /// The number of the first attempt that is not a turn.
    pub(super) fn id(&self) -> AttemptId {
        self.held().next().map_or(AttemptId(0), |want| want.id)
    }

    /// The requested resources, without turns.
    pub(super) fn held(&self) -> impl Iterator<Item = &Want> {
        self.parts.iter().filter(|want| want.role != Role::Turn)
    }

    /// Records the grant of the node at `node` with `fence`.
    pub(super) fn granted(&self, node: String, fence: Option<u64>) {
        self.all_granted([(node, fence)]);
    }

    /// Records the grant of this turn with the ticket at `node`, which was created by the transaction
    /// `czxid`.
    pub(super) fn granted_turn(&self, node: String, czxid: u64, turn: Turn) {
        self.grant([(node, Some(turn.fence(czxid)), Some(turn))]);
    }

    /// Records these grants, in the order in which the resources were requested, and ends the turns.
    pub(super) fn all_granted(&self, grants: impl IntoIterator<Item = Granted>) {
        self.grant(grants.into_iter().map(|(node, fence)| (node, fence, None)));
    }

    fn grant(&self, grants: impl IntoIterator<Item = (String, Option<u64>, Option<Turn>)>) {
        let client = &self.ctx.client;
        let session = client.session_id().unwrap_or_default();
        let generation = client.state().current().generation;
        for (want, (node, fence, turn)) in self.held().zip(grants) {
            want.fence.set(fence);
            self.write(EventKind::Granted(want.id, Grant { node, session, generation, fence, turn }));
        }
        for turn in self.parts.iter().filter(|want| want.role == Role::Turn) {
            self.write(EventKind::Ended(turn.id, Ending::Passed));
        }
        self.phase.set(Phase::Holding);
        self.ctx.controls.granted();
    }

    /// Records that the attempt ended without a grant.
    #[expect(clippy::needless_pass_by_value, reason = "an ending is made to be told")]
    pub(super) fn ended(&self, ending: Ending) {
        if ending == Ending::Cancelled {
            self.write(EventKind::Fault(FaultKind::Cancelled));
        }
        self.parts.iter().for_each(|want| self.write(EventKind::Ended(want.id, ending.clone())));
        self.phase.set(Phase::Over);
    }

    /// Records the request for another handle.
    pub(super) fn reentered(&self, handle: Handle) {
        self.inner_handles.set(self.inner_handles.get() + u32::from(handle == Handle::Given));
        self.each(|attempt| EventKind::Reentered(attempt, handle));
    }

    /// Records the release of one of several handles.
    pub(super) fn inner_released(&self) {
        self.inner_handles.set(self.inner_handles.get().saturating_sub(1));
        self.each(EventKind::InnerReleased);
    }

    /// Records that the release of the last handle begins. From here on another client may hold, whatever the
    /// outcome of the release.
    pub(super) fn releasing(&self) {
        self.each(EventKind::Releasing);
        self.phase.set(Phase::Over);
    }

    /// Records that the release of the last handle returned.
    pub(super) fn released(&self, ok: bool) {
        self.each(|attempt| EventKind::Released { attempt, ok });
    }

    /// Records that the last handle was dropped.
    pub(super) fn dropped(&self) {
        self.each(EventKind::Dropped);
        self.phase.set(Phase::Over);
    }

    /// Records an event for each held resource.
    pub(super) fn each(&self, kind: impl Fn(AttemptId) -> EventKind) {
        self.held().for_each(|want| self.write(kind(want.id)));
    }

    /// Records an event.
    pub(super) fn write(&self, kind: EventKind) {
        self.ctx.recorder.write(kind);
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        if self.ctx.controls.is_dying() {
            return;
        }
        match self.phase.get() {
            Phase::Trying => self.ended(Ending::Cancelled),
            Phase::Holding => {
                (0..self.inner_handles.get()).for_each(|_| self.inner_released());
                self.dropped();
            }
            Phase::Over => {}
        }
    }
}

/// Records one call of a method that has a deadline.
///
/// # On drop
/// Records a call that has not returned as abandoned. Records nothing if its process dies.
#[derive(Debug)]
pub(super) struct Call {
    ctx: ClientCtx,
    id: CallId,
    returned: Cell<bool>,
}

impl Call {
    /// Records that a method is called.
    pub(super) fn begin(ctx: &ClientCtx, operation: &'static str, within: Duration) -> Self {
        let id = ctx.recorder.call();
        ctx.recorder.write(EventKind::Called { call: id, operation, within });
        Self { ctx: ctx.clone(), id, returned: Cell::new(false) }
    }

    /// Records that the method returned.
    pub(super) fn returned(&self, outcome: String) {
        self.ctx.recorder.write(EventKind::Returned { call: self.id, outcome });
        self.returned.set(true);
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if !self.returned.get() && !self.ctx.controls.is_dying() {
            self.ctx.recorder.write(EventKind::Abandoned(self.id));
        }
    }
}
