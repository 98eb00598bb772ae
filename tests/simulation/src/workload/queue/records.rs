use super::workload::Stock;
use crate::workload::ClientCtx;
use docent::Delivery as Held;
use docent_checker::{AttemptId, Delivering, EventKind, FaultKind, Putting, Settlement, Taking};
use std::cell::Cell;
use std::time::Duration;

/// Records a put.
///
/// # On drop
/// Records a put that has not returned with an unknown outcome. Records nothing if its process dies.
pub(super) struct Put<'a> {
    ctx: &'a ClientCtx,
    id: AttemptId,
    is_recorded: Cell<bool>,
}

impl<'a> Put<'a> {
    pub(super) fn begin(ctx: &'a ClientCtx, path: &str, items: &[u64]) -> Self {
        let id = ctx.recorder.attempt();
        ctx.recorder
            .write(EventKind::Put(id, Putting::Began { path: path.to_owned(), items: items.to_vec() }));
        Self { ctx, id, is_recorded: Cell::new(false) }
    }

    pub(super) fn ended(&self, put: Option<bool>) {
        self.ctx.recorder.write(EventKind::Put(self.id, Putting::Ended(put)));
        self.is_recorded.set(true);
    }
}

impl Drop for Put<'_> {
    fn drop(&mut self) {
        if !self.is_recorded.get() && !self.ctx.controls.is_dying() {
            self.ctx.recorder.write(EventKind::Fault(FaultKind::Cancelled));
            self.ended(None);
        }
    }
}

/// Records a take.
///
/// # On drop
/// Records that the take ended. Records nothing if its process dies.
pub(super) struct Take<'a> {
    ctx: &'a ClientCtx,
    id: AttemptId,
}

impl<'a> Take<'a> {
    pub(super) fn begin(ctx: &'a ClientCtx, path: &str, waits: bool, newer: bool) -> Self {
        let id = ctx.recorder.attempt();
        ctx.recorder.write(EventKind::Took(id, Taking::Began { path: path.to_owned(), waits, newer }));
        Self { ctx, id }
    }

    /// Records that the future of the take is no longer polled.
    pub(super) fn unpolled(&self) {
        self.ctx.recorder.write(EventKind::Took(self.id, Taking::Unpolled));
    }
}

impl Drop for Take<'_> {
    fn drop(&mut self) {
        if !self.ctx.controls.is_dying() {
            self.ctx.recorder.write(EventKind::Took(self.id, Taking::Ended));
        }
    }
}

/// Records what happens to an item that was handed out.
///
/// # On drop
/// Records a delivery that was neither acknowledged nor given back as given back. Records nothing if its
/// process dies.
pub(super) struct Delivery<'a> {
    ctx: &'a ClientCtx,
    id: AttemptId,
    /// Time after which the item may be handed out again if the delivery is dropped.
    pub(super) delay: Duration,
    is_recorded: Cell<bool>,
}

impl<'a> Delivery<'a> {
    pub(super) fn begin(ctx: &'a ClientCtx, stock: &Stock, held: &Held<u64>) -> Self {
        let (id, delay) = (ctx.recorder.attempt(), stock.delay(held.deliveries()));
        let delivery = Self { ctx, id, delay, is_recorded: Cell::new(false) };
        delivery.write(Delivering::Given {
            item: *held.item(),
            node: format!("{}/items/{}", stock.path, held.name()),
            fence: held.fence().as_u64(),
            deliveries: held.deliveries(),
        });
        delivery.held_checked(held);
        delivery
    }

    pub(super) fn held_checked(&self, held: &Held<u64>) {
        self.write(Delivering::HeldChecked { held: held.is_held() });
    }

    pub(super) fn wrote(&self, node: String, applied: Option<bool>) {
        self.write(Delivering::Wrote { node, applied });
    }

    pub(super) fn settling(&self, way: Settlement) {
        self.write(Delivering::Settling(way));
    }

    pub(super) fn settled(&self, settled: Option<bool>) {
        self.write(Delivering::Settled(settled));
        if settled != Some(true) {
            // Some calls fail, or are dropped, before they write: then the item is given back.
            self.write(Delivering::GivenBack { delay: self.delay });
        }
        self.is_recorded.set(true);
    }

    pub(super) fn given_back(&self, delay: Duration) {
        self.write(Delivering::GivenBack { delay });
        self.is_recorded.set(true);
    }

    fn write(&self, step: Delivering) {
        self.ctx.recorder.write(EventKind::Delivered(self.id, step));
    }
}

impl Drop for Delivery<'_> {
    fn drop(&mut self) {
        if !self.is_recorded.get() && !self.ctx.controls.is_dying() {
            self.given_back(self.delay);
        }
    }
}
