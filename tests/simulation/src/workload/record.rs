use super::Place;
use docent_testkit::history::{Attempt, AttemptId, CallId, Ending, FaultKind, Grant, Handle, Role, What};
use std::cell::Cell;
use std::time::Duration;

/// Writes down one attempt and what becomes of it.
///
/// # On drop
/// An attempt that is under way is recorded as cancelled, and one that holds as dropped; not when its process dies, which
/// writes nothing.
#[derive(Debug)]
pub(super) struct Record {
    place: Place,
    id: AttemptId,
    phase: Cell<Phase>,
    /// Handles besides the last one.
    others: Cell<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Trying,
    Holding,
    Over,
}

impl Record {
    /// An attempt begins.
    pub(super) fn begin(place: &Place, path: &str, role: Role, patience: Option<Duration>) -> Self {
        let id = place.scribe.attempt();
        place.scribe.write(What::Began(Attempt { id, path: path.to_owned(), role, patience }));
        Self { place: place.clone(), id, phase: Cell::new(Phase::Trying), others: Cell::new(0) }
    }

    /// Its number.
    pub(super) fn id(&self) -> AttemptId {
        self.id
    }

    /// It holds the node at `node` with `fence`.
    pub(super) fn granted(&self, node: String, fence: Option<u64>) {
        let client = &self.place.client;
        let session = client.session_id().unwrap_or_default();
        let epoch = client.state().current().epoch;
        self.write(What::Granted(self.id, Grant { node, session, epoch, fence }));
        self.phase.set(Phase::Holding);
    }

    /// It does not hold and never will.
    pub(super) fn ended(&self, ending: Ending) {
        if ending == Ending::Cancelled {
            self.write(What::Fault(FaultKind::Cancelled));
        }
        self.write(What::Ended(self.id, ending));
        self.phase.set(Phase::Over);
    }

    /// Another handle of it was asked for.
    pub(super) fn reentered(&self, handle: Handle) {
        self.others.set(self.others.get() + u32::from(handle == Handle::Given));
        self.write(What::Reentered(self.id, handle));
    }

    /// One handle of several is being given up.
    pub(super) fn inner_released(&self) {
        self.others.set(self.others.get().saturating_sub(1));
        self.write(What::InnerReleased(self.id));
    }

    /// The last handle is being given up: from here on it is another's, whatever becomes of the release.
    pub(super) fn releasing(&self) {
        self.write(What::Releasing(self.id));
        self.phase.set(Phase::Over);
    }

    /// The last handle was given up.
    pub(super) fn released(&self, ok: bool) {
        self.write(What::Released { attempt: self.id, ok });
    }

    /// The last handle was dropped.
    pub(super) fn dropped(&self) {
        self.write(What::Dropped(self.id));
        self.phase.set(Phase::Over);
    }

    /// Takes down what concerns it.
    pub(super) fn write(&self, what: What) {
        self.place.scribe.write(what);
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        if self.place.controls.is_dying() {
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
    place: Place,
    id: CallId,
    returned: Cell<bool>,
}

impl Call {
    /// A method is called.
    pub(super) fn begin(place: &Place, operation: &'static str, within: Duration) -> Self {
        let id = place.scribe.call();
        place.scribe.write(What::Called { call: id, operation, within });
        Self { place: place.clone(), id, returned: Cell::new(false) }
    }

    /// It returned.
    pub(super) fn returned(&self, outcome: String) {
        self.place.scribe.write(What::Returned { call: self.id, outcome });
        self.returned.set(true);
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if !self.returned.get() && !self.place.controls.is_dying() {
            self.place.scribe.write(What::Abandoned(self.id));
        }
    }
}
