use super::acquire_mode::{AcquireMode, settle};
use super::hold::{WRITTEN, Worker};
use super::pace::Pace;
use super::record::Record;
use super::{ClientCtx, Workload};
use docent::Mutex;
use docent::guard::{Guard, Held};
use docent::locks::{AcquireError, MutexGuard, Owner, SharedMutex, SharedMutexGuard, TurnFence};
use docent_checker::{Ending, FencedResource, Role, Turn};
use fastrand::Rng;
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use std::ops::{ControlFlow, Deref};
use std::time::Duration;

/// Folder of the mutexes.
const LOCKS: &str = "/locks";

/// Clients that acquire, use, lose, re-enter and release a few mutexes in every possible way.
#[derive(Debug)]
pub(super) struct MutexWorkload {
    paths: Vec<String>,
    pace: Pace,
    resource: FencedResource,
    /// How often a ticket is passed on among the tasks of a client, and for how long, if tickets are shared.
    sharing: Option<(u32, Duration)>,
}

impl MutexWorkload {
    pub(super) fn draw(rng: &mut Rng) -> Self {
        Self {
            paths: (0..rng.usize(1..=3)).map(|number| format!("{LOCKS}/m{number}")).collect(),
            pace: Pace::draw(rng),
            resource: FencedResource::default(),
            sharing: None,
        }
    }

    /// Clients whose tasks share tickets, while some of their tasks use separate tickets.
    pub(super) fn cohort(rng: &mut Rng) -> Self {
        let (pace, paths) = (Pace::crowded(rng), vec![format!("{LOCKS}/m0")]);
        let time = Duration::from_millis([50, 1_000, 20_000][rng.usize(..3)]);
        Self { paths, pace, resource: FencedResource::default(), sharing: Some((rng.u32(1..=3), time)) }
    }

    /// One attempt, and what follows if it is granted. Breaks if the client is closed.
    async fn attempt(&self, ctx: &ClientCtx, rng: &mut Rng) -> ControlFlow<()> {
        let path = &self.paths[rng.usize(..self.paths.len())];
        let Some((limit, time)) = self.sharing else {
            let Ok(mutex) = Mutex::new(&ctx.client, path) else { return ControlFlow::Break(()) };
            let granted = |record: &Record, guard: &MutexGuard| {
                record.granted(guard.path(), Some(guard.fence().as_u64()));
            };
            return self.attempt_at(ctx, path, &mutex, granted, rng).await;
        };
        let turn = |record: &Record, node: String, fence: TurnFence| {
            let turn = Turn { number: fence.turn(), last: limit };
            record.granted_turn(node, fence.ticket().as_u64(), turn);
        };
        if rng.u8(..6) == 0 {
            let Ok(mutex) = Mutex::new(&ctx.client, path) else { return ControlFlow::Break(()) };
            let granted =
                |record: &Record, guard: &MutexGuard| turn(record, guard.path(), guard.fence().into());
            return self.attempt_at(ctx, path, &mutex, granted, rng).await;
        }
        let builder = SharedMutex::builder(&ctx.client, path).limit(limit).share_for(time);
        let Ok(mutex) = builder.build() else { return ControlFlow::Break(()) };
        let granted = |record: &Record, guard: &SharedMutexGuard| turn(record, guard.path(), guard.fence());
        self.attempt_at(ctx, path, &mutex, granted, rng).await
    }

    /// One attempt to acquire `mutex`, which is at `path`.
    async fn attempt_at<M: AnyMutex>(
        &self,
        ctx: &ClientCtx,
        path: &str,
        mutex: &M,
        granted: impl Fn(&Record, &M::Guard),
        rng: &mut Rng,
    ) -> ControlFlow<()> {
        if self.sharing.is_some() && rng.u8(..4) == 0 {
            return self.leave_late(ctx, path, mutex, rng).await;
        }
        let (mode, owner) = (AcquireMode::draw(ctx, rng), Owner::new());
        let record = Record::begin(ctx, path, Role::Exclusive, mode.patience());
        let acquired = mode.acquire(
            &owner,
            || mutex.acquire(),
            || mutex.try_acquire(),
            |limit| mutex.acquire_timeout(limit),
        );
        if let Some(guard) = settle(&record, acquired.await)? {
            granted(&record, &guard);
            let worker = Worker::new(ctx, &record, &self.resource);
            self.hold(worker, mutex, &owner, guard, rng).await;
        }
        ControlFlow::Continue(())
    }

    /// Starts to acquire the mutex, does not poll the future for a moment, in which the mutex may be granted,
    /// and gives up.
    async fn leave_late<M: AnyMutex>(
        &self,
        ctx: &ClientCtx,
        path: &str,
        mutex: &M,
        rng: &mut Rng,
    ) -> ControlFlow<()> {
        let record = Record::begin(ctx, path, Role::Exclusive, None);
        let mut acquire = Box::pin(mutex.acquire());
        let first = futures_util::poll!(acquire.as_mut());
        if first.is_pending() {
            tokio::time::sleep(Duration::from_millis(rng.u64(1..30))).await;
        }
        record.ended(Ending::Cancelled);
        ControlFlow::Continue(())
    }

    /// Works while the mutex is held, until its release.
    async fn hold<M: AnyMutex>(
        &self,
        worker: Worker<'_>,
        mutex: &M,
        owner: &Owner,
        guard: M::Guard,
        rng: &mut Rng,
    ) {
        worker.toil(&guard, self.pace.span(worker.ctx, rng), rng).await;
        if rng.u8(..4) > 0 {
            return worker.give_up(guard, rng).await;
        }
        let again = match rng.u8(..3) {
            0 => M::reenter(&guard),
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

type Acquired<G> = Result<G, AcquireError>;

/// A mutex, whether or not tasks share its tickets.
trait AnyMutex {
    type Guard: Guard + Deref<Target = Held>;

    fn acquire(&self) -> impl Future<Output = Acquired<Self::Guard>> + Send + 'static;
    fn acquire_as(&self, owner: &Owner) -> impl Future<Output = Acquired<Self::Guard>> + Send + 'static;
    fn try_acquire(&self) -> impl Future<Output = Acquired<Self::Guard>> + Send + 'static;
    fn acquire_timeout(
        &self,
        limit: Duration,
    ) -> impl Future<Output = Acquired<Self::Guard>> + Send + 'static;
    fn reenter(guard: &Self::Guard) -> Option<Self::Guard>;
}

macro_rules! any_mutex {
    ($mutex:ident, $guard:ident) => {
        impl AnyMutex for $mutex {
            type Guard = $guard;

            fn acquire(&self) -> impl Future<Output = Acquired<$guard>> + Send + 'static {
                $mutex::acquire(self)
            }

            fn acquire_as(&self, owner: &Owner) -> impl Future<Output = Acquired<$guard>> + Send + 'static {
                $mutex::acquire_as(self, owner)
            }

            fn try_acquire(&self) -> impl Future<Output = Acquired<$guard>> + Send + 'static {
                $mutex::try_acquire(self)
            }

            fn acquire_timeout(
                &self,
                limit: Duration,
            ) -> impl Future<Output = Acquired<$guard>> + Send + 'static {
                $mutex::acquire_timeout(self, limit)
            }

            fn reenter(guard: &$guard) -> Option<$guard> {
                guard.reenter().ok()
            }
        }
    };
}

any_mutex!(Mutex, MutexGuard);
any_mutex!(SharedMutex, SharedMutexGuard);
