use crate::workload::ClientCtx;
use docent_checker::{Announcing, AttemptId, EventKind};
use std::cell::Cell;

/// Records the data of an instance or a member.
///
/// # On drop
/// Records that the member leaves, unless that is recorded already. Records nothing if its process dies.
pub(super) struct Offer<'a> {
    ctx: &'a ClientCtx,
    id: AttemptId,
    path: String,
    is_leaving: Cell<bool>,
}

impl<'a> Offer<'a> {
    pub(super) fn new(ctx: &'a ClientCtx, path: String) -> Self {
        Self { ctx, id: ctx.recorder.attempt(), path, is_leaving: Cell::new(false) }
    }

    /// Announces a number that was never used before, and returns it.
    pub(super) fn request(&self) -> u64 {
        let number = self.ctx.recorder.attempt().0;
        self.write(Announcing::Requested { path: self.path.clone(), number });
        number
    }

    pub(super) fn written(&self, number: u64) {
        self.write(Announcing::Written(number));
    }

    pub(super) fn leaving(&self) {
        if !self.is_leaving.replace(true) {
            self.write(Announcing::Leaving);
        }
    }

    pub(super) fn left(&self) {
        self.write(Announcing::Left);
    }

    fn write(&self, step: Announcing) {
        self.ctx.recorder.write(EventKind::Announced(self.id, step));
    }
}

impl Drop for Offer<'_> {
    fn drop(&mut self) {
        if !self.ctx.controls.is_dying() {
            self.leaving();
        }
    }
}
