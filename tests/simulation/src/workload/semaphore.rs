use super::acquire_mode::{AcquireMode, settle};
use super::hold::{WRITTEN, Worker};
use super::pace::Pace;
use super::record::Record;
use super::{ClientCtx, Workload};
use docent::locks::{Owner, SharedLimit};
use docent::{ErrorKind, Semaphore};
use docent_checker::{FencedResource, Limit, Role};
use docent_server::Transaction;
use fastrand::Rng;
use futures_util::FutureExt;
use futures_util::future::{LocalBoxFuture, join_all, pending};
use std::ops::ControlFlow;
use tokio::time::sleep;

/// Folder of the semaphores.
const SEMAPHORES: &str = "/semaphores";
/// Folder of the limits that can change.
const LIMITS: &str = "/limits";

/// Clients that acquire one or several permits of a few semaphores, whose limits are fixed, or raised and
/// lowered continuously.
#[derive(Debug)]
pub(super) struct SemaphoreWorkload {
    semaphores: Vec<Kind>,
    pace: Pace,
    resource: FencedResource,
}

/// A semaphore, as its clients know it.
#[derive(Debug)]
struct Kind {
    path: String,
    /// Path of its limit, if the limit can change.
    limit: Option<String>,
    /// Maximum limit.
    most: u32,
}

impl Kind {
    fn draw(number: usize, rng: &mut Rng) -> Self {
        Self {
            path: format!("{SEMAPHORES}/s{number}"),
            limit: rng.bool().then(|| format!("{LIMITS}/s{number}")),
            most: rng.u32(1..=4),
        }
    }

    fn turns(&self) -> String {
        format!("{}/locks", self.path)
    }

    fn leases(&self) -> String {
        format!("{}/leases", self.path)
    }

    fn shared(&self, ctx: &ClientCtx) -> Option<SharedLimit> {
        SharedLimit::new(&ctx.client, self.limit.as_ref()?, self.most).ok()
    }

    fn semaphore(&self, ctx: &ClientCtx) -> Result<Semaphore, docent::Error> {
        match self.shared(ctx) {
            Some(limit) => Semaphore::with_limit(&ctx.client, &self.path, &limit),
            None => Semaphore::new(&ctx.client, &self.path, self.most),
        }
    }

    /// Limits, each with the transaction from which on it applied.
    fn limits(&self, journal: &[Transaction]) -> Vec<Limit> {
        let limit = |zxid, permits| Limit { path: self.leases(), zxid, permits };
        let mut limits = vec![limit(0, self.most)];
        for transaction in journal.iter().filter(|transaction| Some(&transaction.path) == self.limit.as_ref())
        {
            if let Some(bytes) = transaction.data.as_ref().and_then(|data| data.first_chunk::<4>()) {
                limits.push(limit(transaction.zxid, u32::from_be_bytes(*bytes)));
            }
        }
        limits
    }
}

impl SemaphoreWorkload {
    pub(super) fn draw(rng: &mut Rng) -> Self {
        Self {
            semaphores: (0..rng.usize(1..=2)).map(|number| Kind::draw(number, rng)).collect(),
            pace: Pace::draw(rng),
            resource: FencedResource::default(),
        }
    }

    /// One attempt, and what follows if it is granted. Breaks if the client is closed.
    async fn attempt(&self, ctx: &ClientCtx, rng: &mut Rng) -> ControlFlow<()> {
        let kind = &self.semaphores[rng.usize(..self.semaphores.len())];
        let Ok(semaphore) = kind.semaphore(ctx) else { return ControlFlow::Break(()) };
        let permits = if rng.bool() { 1 } else { rng.u32(1..=kind.most) };
        let (mode, owner) = (AcquireMode::draw_single(ctx, rng), Owner::new());
        let turn = (kind.turns(), Role::Turn);
        let wanted = (0..permits).map(|_| (kind.leases(), Role::Permits(permits)));
        let record = Record::begin_all(ctx, wanted.chain([turn]), mode.patience());
        let acquired = mode.acquire(
            &owner,
            || semaphore.acquire_many(permits),
            || semaphore.try_acquire_many(permits),
            |limit| semaphore.acquire_many_timeout(permits, limit),
        );
        if let Some(permit) = settle(&record, acquired.await)? {
            record.all_granted(permit.paths().into_iter().map(|node| (node, None)));
            let worker = Worker::new(ctx, &record, &self.resource);
            worker.toil(&permit, self.pace.span(ctx, rng), rng).await;
            worker.give_up(permit, rng).await;
        }
        ControlFlow::Continue(())
    }

    /// Raises and lowers limits. Once nothing new begins, sets them to the maximum, so that all attempts get
    /// their permits.
    async fn limit(&self, ctx: &ClientCtx, mut rng: Rng) {
        let shared: Vec<_> =
            self.semaphores.iter().filter_map(|kind| Some((kind.shared(ctx)?, kind.most))).collect();
        if shared.is_empty() {
            return pending().await;
        }
        loop {
            let is_ending = ctx.stop.is_cancelled();
            for (limit, most) in &shared {
                let permits = if is_ending { *most } else { rng.u32(0..=*most) };
                let set = limit.set(permits).await;
                if set.is_err_and(|error| error.kind() == ErrorKind::Closed) {
                    return pending().await;
                }
            }
            let pause = ctx.setting.timeout / 4;
            tokio::select! {
                () = sleep(pause.mul_f64(0.2 + 2.0 * rng.f64())) => {}
                () = ctx.stop.cancelled(), if !is_ending => {}
            }
        }
    }
}

impl Workload for SemaphoreWorkload {
    fn nodes(&self) -> Vec<String> {
        vec![WRITTEN.to_owned(), LIMITS.to_owned()]
    }

    fn emptied(&self) -> Vec<String> {
        self.semaphores.iter().flat_map(|kind| [kind.turns(), kind.leases()]).collect()
    }

    fn limits(&self, journal: &[Transaction]) -> Vec<Limit> {
        self.semaphores.iter().flat_map(|kind| kind.limits(journal)).collect()
    }

    fn run<'a>(&'a self, ctx: ClientCtx, rng: &'a mut Rng) -> LocalBoxFuture<'a, ()> {
        async move {
            let attempt = async |rng: &mut Rng| self.attempt(&ctx, rng).await;
            let tasks = (0..self.pace.tasks(rng)).map(|_| self.pace.task(&ctx, rng.fork(), attempt));
            let tasks = join_all(tasks.collect::<Vec<_>>());
            tokio::select! {
                biased;
                _ = tasks => {}
                () = self.limit(&ctx, rng.fork()) => {}
            }
        }
        .boxed_local()
    }
}
