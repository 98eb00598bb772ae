use crate::workload::ClientCtx;
use docent_checker::{Announcing, AttemptId, EventKind};
use std::cell::Cell;

/// Writes down the data of a listed instance or member.
///
/// # On drop
/// An offer that has not left by itself is recorded as leaving; not when its process dies, which writes
/// nothing.
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

    /// A number that nobody said before, and which it says from now on.
    pub(super) fn wants(&self) -> u64 {
        let number = self.ctx.recorder.attempt().0;
        self.write(Announcing::Wants { path: self.path.clone(), number });
        number
    }

    pub(super) fn told(&self, number: u64) {
        self.write(Announcing::Told(number));
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
