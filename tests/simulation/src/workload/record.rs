use super::ClientCtx;
use docent_checker::{Attempt, AttemptId, CallId, Ending, EventKind, FaultKind, Grant, Handle, Role, Turn};
use std::cell::Cell;
use std::time::Duration;

/// Writes down one acquire and what becomes of it: an attempt for each thing that it wants.
///
/// # On drop
/// An attempt that is under way is recorded as cancelled, and one that holds as dropped; not when its process
/// dies, which writes nothing.
#[derive(Debug)]
pub(super) struct Record {
    ctx: ClientCtx,
    wants: Vec<Want>,
    phase: Cell<Phase>,
    /// Handles besides the last one.
    others: Cell<u32>,
}

/// One thing that is wanted.
#[derive(Debug)]
pub(super) struct Want {
    pub(super) id: AttemptId,
    pub(super) path: String,
    role: Role,
    /// Once it is granted, where it has one.
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
    /// An attempt begins.
    pub(super) fn begin(ctx: &ClientCtx, path: &str, role: Role, patience: Option<Duration>) -> Self {
        Self::begin_all(ctx, [(path.to_owned(), role)], patience)
    }

    /// Attempts begin that are one acquire.
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
        let wants: Vec<Want> = wanted.into_iter().map(begin).collect();
        if wants.len() > 1 {
            ctx.recorder.write(EventKind::Together(wants.iter().map(|want| want.id).collect()));
        }
        Self { ctx: ctx.clone(), wants, phase: Cell::new(Phase::Trying), others: Cell::new(0) }
    }

    /// The number of the first one that it holds.
    pub(super) fn id(&self) -> AttemptId {
        self.held().next().map_or(AttemptId(0), |want| want.id)
    }

    /// Holds that it wants: all but turns.
    pub(super) fn held(&self) -> impl Iterator<Item = &Want> {
        self.wants.iter().filter(|want| want.role != Role::Turn)
    }

    /// It holds the node at `node` with `fence`.
    pub(super) fn granted(&self, node: String, fence: Option<u64>) {
        self.all_granted([(node, fence)]);
    }

    /// It has this turn with the ticket at `node`, which was created by the transaction `czxid`.
    pub(super) fn granted_turn(&self, node: String, czxid: u64, turn: Turn) {
        self.grant([(node, Some(turn.fence(czxid)), Some(turn))]);
    }

    /// It holds all of these, in the order in which they were wanted. Turns are over.
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
        for turn in self.wants.iter().filter(|want| want.role == Role::Turn) {
            self.write(EventKind::Ended(turn.id, Ending::Passed));
        }
        self.phase.set(Phase::Holding);
        self.ctx.controls.granted();
    }

    /// It does not hold and never will.
    #[expect(clippy::needless_pass_by_value, reason = "an ending is made to be told")]
    pub(super) fn ended(&self, ending: Ending) {
        if ending == Ending::Cancelled {
            self.write(EventKind::Fault(FaultKind::Cancelled));
        }
        self.wants.iter().for_each(|want| self.write(EventKind::Ended(want.id, ending.clone())));
        self.phase.set(Phase::Over);
    }

    /// Another handle of it was asked for.
    pub(super) fn reentered(&self, handle: Handle) {
        self.others.set(self.others.get() + u32::from(handle == Handle::Given));
        self.each(|attempt| EventKind::Reentered(attempt, handle));
    }

    /// One handle of several is being given up.
    pub(super) fn inner_released(&self) {
        self.others.set(self.others.get().saturating_sub(1));
        self.each(EventKind::InnerReleased);
    }

    /// The last handle is being given up: from here on another may hold it, whatever becomes of the release.
    pub(super) fn releasing(&self) {
        self.each(EventKind::Releasing);
        self.phase.set(Phase::Over);
    }

    /// The last handle was given up.
    pub(super) fn released(&self, ok: bool) {
        self.each(|attempt| EventKind::Released { attempt, ok });
    }

    /// The last handle was dropped.
    pub(super) fn dropped(&self) {
        self.each(EventKind::Dropped);
        self.phase.set(Phase::Over);
    }

    /// Takes down the same of all that it holds.
    pub(super) fn each(&self, kind: impl Fn(AttemptId) -> EventKind) {
        self.held().for_each(|want| self.write(kind(want.id)));
    }

    /// Takes down what concerns it.
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
                (0..self.others.get()).for_each(|_| self.inner_released());
                self.dropped();
            }
            Phase::Over => {}
        }
    }
}

/// Writes down one call of a method that has a deadline.
///
/// # On drop
/// A call that has not returned is recorded as abandoned; not when its process dies.
#[derive(Debug)]
pub(super) struct Call {
    ctx: ClientCtx,
    id: CallId,
    returned: Cell<bool>,
}

impl Call {
    /// A method is called.
    pub(super) fn begin(ctx: &ClientCtx, operation: &'static str, within: Duration) -> Self {
        let id = ctx.recorder.call();
        ctx.recorder.write(EventKind::Called { call: id, operation, within });
        Self { ctx: ctx.clone(), id, returned: Cell::new(false) }
    }

    /// It returned.
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
