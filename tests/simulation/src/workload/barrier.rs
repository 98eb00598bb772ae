use super::abandon::abandon_at;
use super::pace::Pace;
use super::{ClientCtx, Workload};
use docent::locks::{BarrierError, Entered};
use docent::{Barrier, DoubleBarrier};
use docent_checker::{AttemptId, EventKind, FaultKind, Meeting};
use fastrand::Rng;
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use std::cell::Cell;
use std::ops::ControlFlow;
use tokio::time::{sleep, timeout};

const BARRIERS: &str = "/barriers";
const SIMPLE: &str = "/barriers/simple";
const DOUBLE: &str = "/barriers/double";

/// Clients that repeatedly meet at a double barrier, give up, crash and arrive late, while others set and
/// remove a barrier and wait at it.
#[derive(Debug)]
pub(super) struct BarrierWorkload {
    /// Number of members that the double barrier requires.
    members: u32,
    pace: Pace,
}

impl BarrierWorkload {
    pub(super) fn draw(rng: &mut Rng) -> Self {
        Self { members: rng.u32(1..=4), pace: Pace::draw(rng) }
    }

    /// One visit to one of the barriers. Breaks if the client is closed.
    async fn attempt(&self, ctx: &ClientCtx, rng: &mut Rng) -> ControlFlow<()> {
        match rng.u8(..4) {
            0 => at_the_barrier(ctx, rng).await,
            _ => self.meet(ctx, rng).await,
        }
    }

    async fn meet(&self, ctx: &ClientCtx, rng: &mut Rng) -> ControlFlow<()> {
        let Ok(barrier) = DoubleBarrier::new(&ctx.client, DOUBLE, self.members) else {
            return ControlFlow::Break(());
        };
        let record = MemberRecord::begin(ctx, self.members);
        let entered = match rng.u8(..8) {
            0..=2 => Some(barrier.enter_timeout(ctx.setting.span(rng)).await),
            // The future may never be polled so often.
            3 => tokio::select! {
                entered = abandon_at(rng.u32(1..12), barrier.enter()) => entered.map(|done| done.map_err(BarrierError::from)),
                () = ctx.stop.cancelled() => None,
            },
            4 => timeout(ctx.setting.span(rng), barrier.enter())
                .await
                .ok()
                .map(|done| done.map_err(BarrierError::from)),
            // Missing members may never arrive once nothing new begins.
            _ => tokio::select! {
                entered = barrier.enter() => Some(entered.map_err(BarrierError::from)),
                () = ctx.stop.cancelled() => None,
            },
        };
        let entered = match entered {
            Some(Ok(entered)) => entered,
            Some(Err(error)) => return broken(ctx, &error),
            None => return ControlFlow::Continue(()),
        };
        record.write(Meeting::Entered(entered.path().to_owned()));
        sleep(self.pace.span(ctx, rng)).await;
        leave(&record, ctx, entered, rng).await
    }
}

/// Leaves in one of the possible ways.
async fn leave(
    record: &MemberRecord<'_>,
    ctx: &ClientCtx,
    entered: Entered,
    rng: &mut Rng,
) -> ControlFlow<()> {
    let left = match rng.u8(..8) {
        0 => return ControlFlow::Continue(()),
        1 => {
            record.write(Meeting::Leaving);
            abandon_at(rng.u32(1..12), entered.leave()).await
        }
        2 => {
            record.write(Meeting::Leaving);
            timeout(ctx.setting.span(rng), entered.leave()).await.ok()
        }
        _ => {
            record.write(Meeting::Leaving);
            Some(entered.leave().await)
        }
    };
    let Some(left) = left else { return ControlFlow::Continue(()) };
    record.write(Meeting::Left { ok: left.is_ok() });
    record.is_recorded.set(true);
    match left {
        Err(error) => ctx.failed(&error),
        Ok(()) => ControlFlow::Continue(()),
    }
}

/// Sets the barrier, removes it, or waits at it.
async fn at_the_barrier(ctx: &ClientCtx, rng: &mut Rng) -> ControlFlow<()> {
    let Ok(barrier) = Barrier::new(&ctx.client, SIMPLE) else { return ControlFlow::Break(()) };
    let done = match rng.u8(..4) {
        0 => barrier.set().await.map(drop).map_err(BarrierError::from),
        1 => barrier.remove().await.map_err(BarrierError::from),
        _ => {
            let (limit, since) = (ctx.setting.span(rng), ctx.recorder.now());
            let waited = barrier.wait_timeout(limit).await;
            if waited.is_ok() {
                ctx.recorder.write(EventKind::Passed { path: SIMPLE.to_owned(), since });
            }
            waited
        }
    };
    done.err().map_or(ControlFlow::Continue(()), |error| broken(ctx, &error))
}

fn broken(ctx: &ClientCtx, error: &BarrierError) -> ControlFlow<()> {
    match error {
        BarrierError::Core(error) => ctx.failed(error),
        _ => ControlFlow::Continue(()),
    }
}

/// Records what a member does.
///
/// # On drop
/// Records that a member that has not left gave up. Records nothing if its process dies.
struct MemberRecord<'a> {
    ctx: &'a ClientCtx,
    id: AttemptId,
    is_recorded: Cell<bool>,
}

impl<'a> MemberRecord<'a> {
    fn begin(ctx: &'a ClientCtx, members: u32) -> Self {
        let record = Self { ctx, id: ctx.recorder.attempt(), is_recorded: Cell::new(false) };
        record.write(Meeting::Arrived { path: DOUBLE.to_owned(), members });
        record
    }

    fn write(&self, meeting: Meeting) {
        self.ctx.recorder.write(EventKind::Met(self.id, meeting));
    }
}

impl Drop for MemberRecord<'_> {
    fn drop(&mut self) {
        if !self.is_recorded.get() && !self.ctx.controls.is_dying() {
            self.ctx.recorder.write(EventKind::Fault(FaultKind::Cancelled));
            self.write(Meeting::GaveUp);
        }
    }
}

impl Workload for BarrierWorkload {
    fn nodes(&self) -> Vec<String> {
        // Some of the children belong to no member.
        vec![
            BARRIERS.to_owned(),
            DOUBLE.to_owned(),
            format!("{DOUBLE}/foreign"),
            format!("{DOUBLE}/foreign-0000000001"),
        ]
    }

    fn emptied(&self) -> Vec<String> {
        Vec::new()
    }

    fn run<'a>(&'a self, ctx: ClientCtx, rng: &'a mut Rng) -> LocalBoxFuture<'a, ()> {
        async move { self.pace.toil(&ctx, rng, async |rng| self.attempt(&ctx, rng).await).await }
            .boxed_local()
    }
}
