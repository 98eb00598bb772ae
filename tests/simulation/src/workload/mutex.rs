use super::calls::plain_call;
use super::hold::{Grip, WRITTEN, Worker};
use super::polls::abandon_at;
use super::record::Record;
use super::{Place, Workload};
use docent::{AcquireError, ErrorKind, Mutex, MutexGuard, Owner, Transaction};
use docent_testkit::history::{Ending, FencedResource, Handle, Role};
use fastrand::Rng;
use futures_util::FutureExt;
use futures_util::future::{LocalBoxFuture, join_all};
use std::cell::Cell;
use std::future::Future;
use std::ops::ControlFlow;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// Where the mutexes are.
const LOCKS: &str = "/locks";

/// Clients that acquire, use, lose, re-enter and release a few mutexes in every way there is.
#[derive(Debug)]
pub(super) struct MutexWorkload {
    paths: Vec<String>,
    /// Most tasks of one client.
    tasks: usize,
    /// Longest pause between two attempts.
    think: Duration,
    /// How many holds in ten are long.
    long: u8,
    resource: FencedResource,
}

impl MutexWorkload {
    pub(super) fn draw(rng: &mut Rng) -> Self {
        Self {
            paths: (0..rng.usize(1..=3)).map(|number| format!("{LOCKS}/m{number}")).collect(),
            tasks: rng.usize(1..=3),
            think: Duration::from_millis([5, 50, 500, 2_000][rng.usize(..4)]),
            long: rng.u8(0..=5),
            resource: FencedResource::default(),
        }
    }

    /// One task of a client.
    async fn task(&self, place: &Place, mut rng: Rng) {
        let attempts = if rng.bool() { usize::MAX } else { rng.usize(1..30) };
        for _ in 0..attempts {
            let pause = self.think.mul_f64(rng.f64());
            if timeout(pause, place.stop.cancelled()).await.is_ok() {
                return;
            }
            let done = match rng.u8(..10) {
                0 => plain_call(place, &mut rng).await,
                _ => self.attempt(place, &mut rng).await,
            };
            if done.is_break() {
                return;
            }
        }
    }

    /// One attempt, and what follows when it is granted. Breaks when the client is closed.
    async fn attempt(&self, place: &Place, rng: &mut Rng) -> ControlFlow<()> {
        let path = &self.paths[rng.usize(..self.paths.len())];
        let Ok(mutex) = Mutex::new(&place.client, path) else { return ControlFlow::Break(()) };
        let (way, owner) = (Way::draw(place, rng), Owner::new());
        let record = Record::begin(place, path, Role::Exclusive, way.patience());
        match way.acquire(&mutex, &owner).await {
            None => record.ended(Ending::Cancelled),
            Some(Ok(guard)) => {
                record.granted(guard.path(), Some(guard.fence().as_u64()));
                let worker =
                    Worker { place, record: &record, path, resource: &self.resource, told: Cell::new(false) };
                self.hold(worker, &mutex, &owner, guard, rng).await;
            }
            Some(Err(error)) => {
                let closed = is_closed(&error);
                record.ended(ending(&error));
                if closed {
                    return ControlFlow::Break(());
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// What is done while it is held, up to its release.
    async fn hold(&self, worker: Worker<'_>, mutex: &Mutex, owner: &Owner, guard: MutexGuard, rng: &mut Rng) {
        let span = self.span(worker.place, rng);
        match rng.u8(..10) {
            0 => {}
            1 | 2 => worker.run(&guard, span, rng).await,
            _ => worker.work(&guard, span, rng).await,
        }
        let guard =
            if rng.u8(..4) == 0 { self.reenter(&worker, mutex, owner, guard, rng).await } else { guard };
        release(worker.record, guard, rng).await;
    }

    /// Another guard of the same hold, work with it, and one of the two given up.
    async fn reenter(
        &self,
        worker: &Worker<'_>,
        mutex: &Mutex,
        owner: &Owner,
        guard: MutexGuard,
        rng: &mut Rng,
    ) -> MutexGuard {
        let again = match rng.u8(..3) {
            0 => guard.reenter().ok(),
            1 => mutex.acquire_as(owner).await.ok(),
            _ => owner.clone().within(async { mutex.acquire().await }).await.ok(),
        };
        let Some(again) = again else {
            worker.record.reentered(Handle::Lost);
            return guard;
        };
        worker.record.reentered(Handle::Given);
        let span = self.span(worker.place, rng);
        worker.work(&again, span, rng).await;
        let (inner, last) = if rng.bool() { (again, guard) } else { (guard, again) };
        worker.record.inner_released();
        match rng.bool() {
            // An error says that the hold is lost, which the next look at the other guard says, too.
            true => drop(inner.release().await),
            false => drop(inner),
        }
        last
    }

    /// How long to work: mostly short, sometimes longer than a lease.
    fn span(&self, place: &Place, rng: &mut Rng) -> Duration {
        match rng.u8(..10) {
            long if long < self.long => place.setting.span(rng),
            _ => Duration::from_millis(rng.u64(..60)),
        }
    }
}

impl Workload for MutexWorkload {
    fn nodes(&self) -> Vec<String> {
        vec![WRITTEN.to_owned()]
    }

    fn emptied(&self) -> Vec<String> {
        self.paths.clone()
    }

    fn run<'a>(&'a self, place: Place, rng: &'a mut Rng) -> LocalBoxFuture<'a, ()> {
        async move {
            let tasks = rng.usize(1..=self.tasks);
            join_all((0..tasks).map(|_| self.task(&place, rng.fork()))).await;
        }
        .boxed_local()
    }
}

/// How a mutex is acquired.
#[derive(Debug)]
enum Way {
    Wait,
    Try,
    /// At most so long.
    Timed(Duration),
    /// Given up at a poll.
    Polls(u32),
    /// Given up after a while.
    Abandoned(Duration),
    /// By two futures of one owner at the same time.
    Twice,
}

impl Way {
    fn draw(place: &Place, rng: &mut Rng) -> Self {
        match rng.u8(..20) {
            0..=7 => Self::Wait,
            8..=10 => Self::Try,
            11..=13 => Self::Timed(place.setting.span(rng)),
            14..=16 => Self::Polls(rng.u32(1..10)),
            17 | 18 => Self::Abandoned(place.setting.span(rng)),
            _ => Self::Twice,
        }
    }

    fn patience(&self) -> Option<Duration> {
        match self {
            Self::Try => Some(Duration::ZERO),
            Self::Timed(limit) => Some(*limit),
            _ => None,
        }
    }

    /// `None` when it was given up.
    async fn acquire(&self, mutex: &Mutex, owner: &Owner) -> Option<Result<MutexGuard, AcquireError>> {
        match self {
            Self::Wait => Some(mutex.acquire_as(owner).await),
            Self::Try => Some(owner.clone().within(async { mutex.try_acquire().await }).await),
            Self::Timed(limit) => {
                Some(owner.clone().within(async { mutex.acquire_timeout(*limit).await }).await)
            }
            Self::Polls(polls) => abandon_at(*polls, mutex.acquire_as(owner)).await,
            Self::Abandoned(after) => timeout(*after, mutex.acquire_as(owner)).await.ok(),
            Self::Twice => {
                tokio::select! {
                    biased;
                    first = mutex.acquire_as(owner) => Some(first),
                    second = mutex.acquire_as(owner) => Some(second),
                }
            }
        }
    }
}

/// Gives the last guard up: by release, by a release that is cancelled, or by drop.
async fn release(record: &Record, guard: MutexGuard, rng: &mut Rng) {
    match rng.u8(..8) {
        0..=4 => {
            record.releasing();
            let released = guard.release().await;
            record.released(released.is_ok());
        }
        5 => {
            record.releasing();
            if let Some(released) = abandon_at(rng.u32(1..4), guard.release()).await {
                record.released(released.is_ok());
            }
        }
        _ => {
            drop(guard);
            record.dropped();
        }
    }
    sleep(Duration::ZERO).await;
}

fn ending(error: &AcquireError) -> Ending {
    match error {
        AcquireError::Busy => Ending::Busy,
        AcquireError::TimedOut => Ending::TimedOut,
        AcquireError::Core(error) => Ending::Failed(format!("{:?}", error.kind())),
        other => Ending::Failed(format!("{other:?}")),
    }
}

fn is_closed(error: &AcquireError) -> bool {
    matches!(error, AcquireError::Core(error) if error.kind() == ErrorKind::Closed)
}

impl Grip for MutexGuard {
    fn is_held(&self) -> bool {
        Self::is_held(self)
    }

    fn is_cancelled(&self) -> bool {
        self.token().is_cancelled()
    }

    fn fence(&self) -> u64 {
        Self::fence(self).as_u64()
    }

    async fn lost(&self) {
        Self::lost(self).await;
    }

    async fn run<F: Future>(&self, future: F) -> Option<F::Output> {
        Self::run(self, future).await.ok()
    }

    async fn verify(&self) -> Result<(), docent::Error> {
        Self::verify(self).await
    }

    fn transaction(&self) -> Transaction {
        Self::transaction(self)
    }
}
