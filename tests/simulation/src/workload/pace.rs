use super::ClientCtx;
use super::calls::plain_call;
use fastrand::Rng;
use futures_util::future::join_all;
use std::ops::ControlFlow;
use std::time::Duration;
use tokio::time::timeout;

/// How busy the clients of a run are.
#[derive(Debug)]
pub(super) struct Pace {
    /// Maximum number of tasks of one client.
    tasks: usize,
    /// Longest pause between two attempts.
    think: Duration,
    /// How many holds in ten are long.
    long: u8,
}

impl Pace {
    pub(super) fn draw(rng: &mut Rng) -> Self {
        Self {
            tasks: rng.usize(1..=3),
            think: Duration::from_millis([5, 50, 500, 2_000][rng.usize(..4)]),
            long: rng.u8(0..=5),
        }
    }

    /// Many tasks with short pauses.
    pub(super) fn crowded(rng: &mut Rng) -> Self {
        let think = Duration::from_millis([5, 20][rng.usize(..2)]);
        Self { tasks: rng.usize(4..=8), think, long: rng.u8(0..=2) }
    }

    /// Number of tasks of a client.
    pub(super) fn tasks(&self, rng: &mut Rng) -> usize {
        rng.usize(1..=self.tasks)
    }

    /// Runs all tasks of a client concurrently.
    pub(super) async fn toil(
        &self,
        ctx: &ClientCtx,
        rng: &mut Rng,
        attempt: impl AsyncFn(&mut Rng) -> ControlFlow<()>,
    ) {
        let tasks = (0..self.tasks(rng)).map(|_| self.task(ctx, rng.fork(), &attempt));
        join_all(tasks).await;
    }

    /// One task of a client: attempts, and sometimes a plain call, until it must stop, has done enough, or
    /// the client is closed.
    pub(super) async fn task(
        &self,
        ctx: &ClientCtx,
        mut rng: Rng,
        attempt: impl AsyncFn(&mut Rng) -> ControlFlow<()>,
    ) {
        let attempts = if rng.bool() { usize::MAX } else { rng.usize(1..30) };
        for _ in 0..attempts {
            if self.rest(ctx, &mut rng).await.is_break() {
                return;
            }
            let done = match rng.u8(..10) {
                0 => plain_call(ctx, &mut rng).await,
                _ => attempt(&mut rng).await,
            };
            if done.is_break() {
                return;
            }
        }
    }

    /// Pauses between attempts. Breaks if nothing new may begin.
    pub(super) async fn rest(&self, ctx: &ClientCtx, rng: &mut Rng) -> ControlFlow<()> {
        match timeout(self.think.mul_f64(rng.f64()), ctx.stop.cancelled()).await {
            Ok(()) => ControlFlow::Break(()),
            Err(_) => ControlFlow::Continue(()),
        }
    }

    /// How long to work: mostly short, sometimes longer than a lease.
    pub(super) fn span(&self, ctx: &ClientCtx, rng: &mut Rng) -> Duration {
        match rng.u8(..10) {
            long if long < self.long => ctx.setting.span(rng),
            _ => Duration::from_millis(rng.u64(..60)),
        }
    }
}
