use super::abandon::abandon_at;
use super::acquire_mode::{AcquireMode, ending, settle};
use super::hold::{WRITTEN, Worker};
use super::pace::Pace;
use super::record::Record;
use super::{ClientCtx, Workload};
use docent::locks::{Owner, ReadGuard, WriteGuard};
use docent::{Fence, RwLock};
use docent_checker::{Ending, EventKind, FencedResource, Role};
use fastrand::Rng;
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use std::ops::ControlFlow;
use std::time::Duration;

/// Folder of the locks.
const LOCKS: &str = "/locks";

/// Clients that read and write under a few locks, downgrade, nest readers in writers, and attempt what would
/// wait for itself.
#[derive(Debug)]
pub(super) struct RwLockWorkload {
    paths: Vec<String>,
    /// How many attempts in ten are those of a writer.
    writers: u8,
    pace: Pace,
    resource: FencedResource,
}

impl RwLockWorkload {
    pub(super) fn draw(rng: &mut Rng) -> Self {
        Self {
            paths: (0..rng.usize(1..=2)).map(|number| format!("{LOCKS}/rw{number}")).collect(),
            writers: rng.u8(1..=7),
            pace: Pace::draw(rng),
            resource: FencedResource::default(),
        }
    }

    /// One attempt, and what follows if it is granted. Breaks if the client is closed.
    async fn attempt(&self, ctx: &ClientCtx, rng: &mut Rng) -> ControlFlow<()> {
        let path = &self.paths[rng.usize(..self.paths.len())];
        let Ok(lock) = RwLock::new(&ctx.client, path) else { return ControlFlow::Break(()) };
        let visit = Visit { workload: self, ctx, path, lock, owner: Owner::new() };
        match rng.u8(..10) < self.writers {
            true => visit.write(rng).await,
            false => visit.read(rng).await,
        }
    }
}

/// One owner that uses one lock.
struct Visit<'a> {
    workload: &'a RwLockWorkload,
    ctx: &'a ClientCtx,
    path: &'a str,
    lock: RwLock,
    owner: Owner,
}

impl Visit<'_> {
    async fn read(&self, rng: &mut Rng) -> ControlFlow<()> {
        let (mode, lock) = (AcquireMode::draw(self.ctx, rng), &self.lock);
        let record = Record::begin(self.ctx, self.path, Role::Shared, mode.patience());
        let acquired =
            mode.acquire(&self.owner, || lock.read(), || lock.try_read(), |limit| lock.read_timeout(limit));
        let guard = settle(&record, acquired.await)?;
        if let Some(guard) = guard {
            record.granted(guard.path(), guard.fence().map(Fence::as_u64));
            let worker = self.worker(&record);
            worker.toil(&guard, self.span(rng), rng).await;
            self.end_reading(&worker, guard, rng).await;
        }
        ControlFlow::Continue(())
    }

    async fn write(&self, rng: &mut Rng) -> ControlFlow<()> {
        let (mode, lock) = (AcquireMode::draw(self.ctx, rng), &self.lock);
        let record = Record::begin(self.ctx, self.path, Role::Exclusive, mode.patience());
        let acquired = mode.acquire(
            &self.owner,
            || lock.write(),
            || lock.try_write(),
            |limit| lock.write_timeout(limit),
        );
        let guard = settle(&record, acquired.await)?;
        if let Some(guard) = guard {
            record.granted(guard.path(), Some(guard.fence().as_u64()));
            let worker = self.worker(&record);
            worker.toil(&guard, self.span(rng), rng).await;
            match rng.u8(..10) {
                0..=3 => worker.give_up(guard, rng).await,
                4 | 5 => self.step_down(&record, guard, rng).await,
                6 | 7 => self.step_down_by_reading(&record, guard, rng).await,
                _ => self.nest(&worker, guard, rng).await,
            }
        }
        ControlFlow::Continue(())
    }

    /// Re-enters the exclusive side as a writer.
    async fn nest(&self, worker: &Worker<'_>, guard: WriteGuard, rng: &mut Rng) {
        let span = self.span(rng);
        let again = match rng.bool() {
            true => guard.reenter().ok(),
            false => self.lock.write_as(&self.owner).await.ok(),
        };
        worker.share(guard, again, span, rng).await;
    }

    /// Downgrades by acquiring the shared side as the same owner, and releasing the exclusive guard after
    /// that. The record ends the writer before the reader begins, so it never contains both guards.
    async fn step_down_by_reading(&self, writer: &Record, guard: WriteGuard, rng: &mut Rng) {
        writer.releasing();
        let reader = Record::begin(self.ctx, self.path, Role::Shared, None);
        let tries = rng.bool();
        let read = async {
            match tries {
                true => self.owner.clone().within(async { self.lock.try_read().await }).await,
                false => self.lock.read_as(&self.owner).await,
            }
        };
        let polls = if rng.u8(..4) == 0 { rng.u32(1..5) } else { u32::MAX };
        let read = abandon_at(polls, read).await;
        match rng.bool() {
            true => drop(guard),
            // The outcome does not matter: the node is deleted in any case.
            false => drop(guard.release().await),
        }
        match read {
            None => reader.ended(Ending::Cancelled),
            Some(Err(error)) => reader.ended(ending(&error)),
            Some(Ok(guard)) => {
                reader.granted(guard.path(), guard.fence().map(Fence::as_u64));
                reader.write(EventKind::Downgraded { from: writer.id(), to: reader.id() });
                let worker = self.worker(&reader);
                worker.toil(&guard, self.span(rng), rng).await;
                self.end_reading(&worker, guard, rng).await;
            }
        }
    }

    /// Downgrades the writer to a reader, or drops the future on the way.
    async fn step_down(&self, writer: &Record, guard: WriteGuard, rng: &mut Rng) {
        writer.releasing();
        let reader = Record::begin(self.ctx, self.path, Role::Shared, None);
        let polls = if rng.u8(..4) == 0 { rng.u32(1..5) } else { u32::MAX };
        match abandon_at(polls, guard.downgrade()).await {
            None => reader.ended(Ending::Cancelled),
            Some(Err(error)) => reader.ended(Ending::Failed(format!("{:?}", error.kind()))),
            Some(Ok(guard)) => {
                reader.granted(guard.path(), guard.fence().map(Fence::as_u64));
                reader.write(EventKind::Downgraded { from: writer.id(), to: reader.id() });
                let worker = self.worker(&reader);
                worker.toil(&guard, self.span(rng), rng).await;
                self.end_reading(&worker, guard, rng).await;
            }
        }
    }

    /// Releases a reader, sometimes after re-entering, or after trying to write.
    async fn end_reading(&self, worker: &Worker<'_>, guard: ReadGuard, rng: &mut Rng) {
        let span = self.span(rng);
        match rng.u8(..6) {
            0 => {
                let again = guard.reenter().ok();
                worker.share(guard, again, span, rng).await;
            }
            1 => {
                let again = self.lock.read_as(&self.owner).await.ok();
                worker.share(guard, again, span, rng).await;
            }
            2 => {
                self.write_in_read().await;
                worker.give_up(guard, rng).await;
            }
            _ => worker.give_up(guard, rng).await,
        }
    }

    /// A reader that requests the exclusive side gets an error immediately, because it would wait for itself.
    /// So the record contains an attempt that does not wait.
    async fn write_in_read(&self) {
        let record = Record::begin(self.ctx, self.path, Role::Exclusive, Some(Duration::ZERO));
        match self.lock.write_as(&self.owner).await {
            Err(error) => record.ended(ending(&error)),
            Ok(guard) => {
                record.granted(guard.path(), Some(guard.fence().as_u64()));
                drop(guard);
                record.dropped();
            }
        }
    }

    fn worker<'r>(&'r self, record: &'r Record) -> Worker<'r> {
        Worker::new(self.ctx, record, &self.workload.resource)
    }

    fn span(&self, rng: &mut Rng) -> Duration {
        self.workload.pace.span(self.ctx, rng)
    }
}

impl Workload for RwLockWorkload {
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
