use super::acquire_mode::{AcquireMode, settle};
use super::hold::{WRITTEN, Worker};
use super::pace::Pace;
use super::record::Record;
use super::{ClientCtx, Workload};
use docent::Mutex;
use docent::locks::{MutexGuard, Owner};
use docent_checker::{FencedResource, Role};
use fastrand::Rng;
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use std::ops::ControlFlow;

/// Where the mutexes are.
const LOCKS: &str = "/locks";

/// Clients that acquire, use, lose, re-enter and release a few mutexes in every way there is.
#[derive(Debug)]
pub(super) struct MutexWorkload {
    paths: Vec<String>,
    pace: Pace,
    resource: FencedResource,
}

impl MutexWorkload {
    pub(super) fn draw(rng: &mut Rng) -> Self {
        Self {
            paths: (0..rng.usize(1..=3)).map(|number| format!("{LOCKS}/m{number}")).collect(),
            pace: Pace::draw(rng),
            resource: FencedResource::default(),
        }
    }

    /// One attempt, and what follows when it is granted. Breaks when the client is closed.
    async fn attempt(&self, ctx: &ClientCtx, rng: &mut Rng) -> ControlFlow<()> {
        let path = &self.paths[rng.usize(..self.paths.len())];
        let Ok(mutex) = Mutex::new(&ctx.client, path) else { return ControlFlow::Break(()) };
        let (mode, owner) = (AcquireMode::draw(ctx, rng), Owner::new());
        let record = Record::begin(ctx, path, Role::Exclusive, mode.patience());
        let acquired = mode.acquire(
            &owner,
            || mutex.acquire(),
            || mutex.try_acquire(),
            |limit| mutex.acquire_timeout(limit),
        );
        if let Some(guard) = settle(&record, acquired.await)? {
            record.granted(guard.path(), Some(guard.fence().as_u64()));
            let worker = Worker::new(ctx, &record, &self.resource);
            self.hold(worker, &mutex, &owner, guard, rng).await;
        }
        ControlFlow::Continue(())
    }

    /// Works while the mutex is held, up to its release.
    async fn hold(&self, worker: Worker<'_>, mutex: &Mutex, owner: &Owner, guard: MutexGuard, rng: &mut Rng) {
        worker.toil(&guard, self.pace.span(worker.ctx, rng), rng).await;
        if rng.u8(..4) > 0 {
            return worker.give_up(guard, rng).await;
        }
        let again = match rng.u8(..3) {
            0 => guard.reenter().ok(),
            1 => mutex.acquire_as(owner).await.ok(),
            _ => owner.clone().within(async { mutex.acquire().await }).await.ok(),
        };
        worker.share(guard, again, self.pace.span(worker.ctx, rng), rng).await;
    }
}

impl Workload for MutexWorkload {
    fn nodes(&self) -> Vec<String> {
        vec![WRITTEN.to_owned()]
    }

    fn emptied(&self) -> Vec<String> {
        self.paths.clone()
    }

    fn run<'a>(&'a self, ctx: ClientCtx, rng: &'a mut Rng) -> LocalBoxFuture<'a, ()> {
        async move { self.pace.toil(&ctx, rng, async |rng| self.attempt(&ctx, rng).await).await }
            .boxed_local()
    }
}
