use super::acquire_mode::{AcquireMode, settle};
use super::hold::{WRITTEN, Worker};
use super::pace::Pace;
use super::record::Record;
use super::{ClientCtx, Workload};
use docent::locks::{AnyLock, Owner};
use docent::{Fence, MultiLock, Mutex, RwLock};
use docent_checker::{FencedResource, Role};
use fastrand::Rng;
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use std::ops::ControlFlow;

/// Folder of the locks.
const LOCKS: &str = "/locks";

/// Clients that acquire overlapping sets of mutexes and of sides of read/write locks.
#[derive(Debug)]
pub(super) struct MultiLockWorkload {
    /// Paths of the locks. The first `mutexes` paths are those of mutexes.
    paths: Vec<String>,
    mutexes: usize,
    pace: Pace,
    resource: FencedResource,
}

impl MultiLockWorkload {
    pub(super) fn draw(rng: &mut Rng) -> Self {
        let number = rng.usize(2..=5);
        Self {
            paths: (0..number).map(|number| format!("{LOCKS}/l{number}")).collect(),
            mutexes: rng.usize(0..=number),
            pace: Pace::draw(rng),
            resource: FencedResource::default(),
        }
    }

    /// A random subset of the locks, ordered by path.
    fn choose(&self, ctx: &ClientCtx, rng: &mut Rng) -> Option<Vec<(String, Role, AnyLock)>> {
        let mut chosen: Vec<usize> = (0..self.paths.len()).collect();
        rng.shuffle(&mut chosen);
        chosen.truncate(rng.usize(1..=3));
        chosen.sort_unstable();
        chosen.into_iter().map(|number| self.side(ctx, number, rng)).collect()
    }

    fn side(&self, ctx: &ClientCtx, number: usize, rng: &mut Rng) -> Option<(String, Role, AnyLock)> {
        let path = &self.paths[number];
        let (role, lock) = if number < self.mutexes {
            (Role::Exclusive, Mutex::new(&ctx.client, path).ok()?.into())
        } else {
            let lock = RwLock::new(&ctx.client, path).ok()?;
            match rng.bool() {
                true => (Role::Exclusive, lock.writing()),
                false => (Role::Shared, lock.reading()),
            }
        };
        Some((path.clone(), role, lock))
    }

    /// One attempt, and what follows if it is granted. Breaks if the client is closed.
    async fn attempt(&self, ctx: &ClientCtx, rng: &mut Rng) -> ControlFlow<()> {
        let Some(locks) = self.choose(ctx, rng) else { return ControlFlow::Break(()) };
        let wanted: Vec<(String, Role)> = locks.iter().map(|(path, role, _)| (path.clone(), *role)).collect();
        let Ok(multi) = MultiLock::new(locks.into_iter().rev().map(|(.., lock)| lock)) else {
            return ControlFlow::Break(());
        };
        let (mode, owner) = (AcquireMode::draw(ctx, rng), Owner::new());
        let record = Record::begin_all(ctx, wanted.clone(), mode.patience());
        let acquired = mode.acquire(
            &owner,
            || multi.acquire(),
            || multi.try_acquire(),
            |limit| multi.acquire_timeout(limit),
        );
        if let Some(guard) = settle(&record, acquired.await)? {
            let fence = |path: &str| guard.fence(path).map(Fence::as_u64);
            let fences: Vec<Option<u64>> = wanted.iter().map(|(path, _)| fence(path)).collect();
            record.all_granted(guard.paths().into_iter().zip(fences));
            let worker = Worker::new(ctx, &record, &self.resource);
            worker.toil(&guard, self.pace.span(ctx, rng), rng).await;
            worker.give_up(guard, rng).await;
        }
        ControlFlow::Continue(())
    }
}

impl Workload for MultiLockWorkload {
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
