use super::ClientCtx;
use super::abandon::abandon_at;
use super::record::Record;
use docent::guard::Guard;
use docent::{CreateMode, Released};
use docent_checker::{EventKind, FencedResource, Handle};
use fastrand::Rng;
use futures_util::FutureExt;
use std::cell::Cell;
use std::future::pending;
use std::pin::pin;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Longest time between two checks of a guard: short compared to every margin.
const CHECK_MS: u64 = 12;

/// Work that is longer than this is meant to outlast something.
const LONG_WORK: Duration = Duration::from_millis(60);

/// A worker that uses a fenced resource while it holds a guard, and constantly checks that guard.
#[derive(Debug)]
pub(super) struct Worker<'a> {
    pub(super) ctx: &'a ClientCtx,
    pub(super) record: &'a Record,
    pub(super) resource: &'a FencedResource,
    /// Whether the loss of the guard was recorded.
    loss_recorded: Cell<bool>,
}

impl<'a> Worker<'a> {
    pub(super) fn new(ctx: &'a ClientCtx, record: &'a Record, resource: &'a FencedResource) -> Self {
        Self { ctx, record, resource, loss_recorded: Cell::new(false) }
    }

    /// Works for `span` in one of the possible ways.
    pub(super) async fn toil<G: Guard>(&self, guard: &G, span: Duration, rng: &mut Rng) {
        match rng.u8(..10) {
            0 => {}
            1 | 2 => self.run(guard, span, rng).await,
            _ => self.work(guard, span, rng).await,
        }
    }

    /// Works with a second guard of the same hold, and releases both, in either order.
    pub(super) async fn share<G: Guard, I: Guard>(
        &self,
        guard: G,
        inner: Option<I>,
        span: Duration,
        rng: &mut Rng,
    ) {
        let Some(inner) = inner else {
            self.record.reentered(Handle::Lost);
            return self.give_up(guard, rng).await;
        };
        self.record.reentered(Handle::Given);
        self.work(&inner, span, rng).await;
        self.record.inner_released();
        if rng.bool() {
            give_up_one(inner, rng).await;
            self.give_up(guard, rng).await;
        } else {
            give_up_one(guard, rng).await;
            self.give_up(inner, rng).await;
        }
    }

    /// Gives the last guard up: by releasing it, by a cancelled release, or by dropping it.
    pub(super) async fn give_up<G: Guard>(&self, guard: G, rng: &mut Rng) {
        let record = self.record;
        match rng.u8(..8) {
            0..=4 => {
                record.releasing();
                let released = guard.release().await;
                record.released(matches!(released, Ok(Released::Done)));
            }
            5 => {
                record.releasing();
                if let Some(released) = abandon_at(rng.u32(1..4), guard.release()).await {
                    record.released(matches!(released, Ok(Released::Done)));
                }
            }
            _ => {
                drop(guard);
                record.dropped();
            }
        }
        sleep(Duration::ZERO).await;
    }

    /// Works for `span`, or until the guard is lost and for some time after that.
    pub(super) async fn work<G: Guard>(&self, guard: &G, span: Duration, rng: &mut Rng) {
        // After a loss, some workers stop immediately, some check again, and a few continue for long.
        let linger = [0.0, 0.0, 0.0, 0.5, 0.5, 2.5][rng.usize(..6)] * rng.f64();
        let linger = self.ctx.setting.timeout.mul_f64(linger);
        let only_reads = rng.u8(..3) == 0;
        let span = if only_reads && span > LONG_WORK { span.mul_f64(1.0 + rng.f64()) } else { span };
        let reading =
            if only_reads { self.keep_reading(rng.fork()).left_future() } else { pending().right_future() };
        let mut reading = pin!(reading);
        let mut steps = pin!(self.steps(guard, Instant::now() + span, linger, only_reads, rng));
        let mut lost = pin!(guard.lost());
        loop {
            tokio::select! {
                // The check comes first: a process that was paused must check its guard before `lost()`
                // happens to report the loss.
                biased;
                () = &mut steps => return,
                _ = &mut lost, if !self.loss_recorded.get() => self.record_loss(),
                () = &mut reading => {}
            }
        }
    }

    /// Reads so often that the client has no other reason to send requests, and waits for nothing for which a
    /// server needs its leader.
    async fn keep_reading(&self, mut rng: Rng) {
        let timeout = self.ctx.setting.timeout;
        let client = self.ctx.client.with_operation_timeout(timeout / 3);
        loop {
            // The reply does not matter.
            let _ = client.exists(WRITTEN).await;
            sleep(timeout.mul_f64(0.02 + 0.12 * rng.f64())).await;
        }
    }

    /// Checks and uses the guard until `until`, or for `linger` after its loss was reported.
    async fn steps<G: Guard>(
        &self,
        guard: &G,
        mut until: Instant,
        linger: Duration,
        only_reads: bool,
        rng: &mut Rng,
    ) {
        let mut loss_recorded = self.loss_recorded.get();
        loop {
            self.step(guard, only_reads, rng).await;
            sleep(Duration::from_millis(rng.u64(1..=CHECK_MS))).await;
            if !std::mem::replace(&mut loss_recorded, self.loss_recorded.get()) && loss_recorded {
                until = until.min(Instant::now() + linger);
            }
            if Instant::now() >= until {
                return;
            }
        }
    }

    /// Works in the guard's own `run`, which stops the work.
    pub(super) async fn run<G: Guard>(&self, guard: &G, span: Duration, rng: &mut Rng) {
        let work = async {
            let until = Instant::now() + span;
            while Instant::now() < until {
                self.use_resource();
                sleep(Duration::from_millis(rng.u64(1..=CHECK_MS))).await;
            }
        };
        if guard.run(work).await.is_err() {
            self.record_loss();
        }
        self.check(guard);
    }

    /// Checks the guard, and mostly uses it after that.
    async fn step<G: Guard>(&self, guard: &G, only_reads: bool, rng: &mut Rng) {
        if !self.check(guard) {
            return;
        }
        match rng.u8(..32) {
            0 if !only_reads => self.verify(guard).await,
            1 if !only_reads => self.commit(guard, rng).await,
            2..=12 => self.use_resource(),
            13..=16 => {
                // A write on its way to the resource cannot be withdrawn.
                sleep(Duration::from_millis(rng.u64(..5))).await;
                self.use_resource();
            }
            _ => {}
        }
    }

    fn record_loss(&self) {
        if !self.loss_recorded.replace(true) {
            self.record.each(EventKind::Lost);
        }
    }

    fn check<G: Guard>(&self, guard: &G) -> bool {
        let (held, cancelled) = (guard.is_held(), guard.token().is_cancelled());
        self.record.each(|attempt| EventKind::HeldChecked { attempt, held, cancelled });
        held
    }

    /// Uses the resource of each hold that has a fence.
    fn use_resource(&self) {
        for want in self.record.held() {
            if let Some(fence) = want.fence.get() {
                let used = self.resource.use_with(&want.path, fence);
                self.record.write(EventKind::Used(want.id, used));
            }
        }
    }

    async fn verify<G: Guard>(&self, guard: &G) {
        let held = match guard.verify().await {
            Ok(()) => Some(true),
            Err(error) if matches!(error.kind(), docent::ErrorKind::Lost(_)) => Some(false),
            Err(_) => None,
        };
        self.record.each(|attempt| EventKind::Verified { attempt, held });
    }

    /// Creates a node that is named after the attempt, if the guard holds.
    async fn commit<G: Guard>(&self, guard: &G, rng: &mut Rng) {
        let node = format!("{WRITTEN}/{}-{:08x}", self.record.id(), rng.u32(..));
        let applied = match guard.transaction().create(&node, "", CreateMode::Persistent).commit().await {
            Ok(_) => Some(true),
            Err(error) if error.may_have_applied() => None,
            Err(_) => Some(false),
        };
        self.record.each(|attempt| EventKind::Committed { attempt, applied });
    }
}

/// Gives up one guard of several. An error means that the hold is lost, which the next check of the other
/// guard also reports.
async fn give_up_one<G: Guard>(guard: G, rng: &mut Rng) {
    match rng.bool() {
        true => drop(guard.release().await),
        false => drop(guard),
    }
}

/// Folder of the nodes that guarded transactions create.
pub(super) const WRITTEN: &str = "/written";
