use super::Place;
use super::record::Record;
use docent::{CreateMode, Transaction};
use docent_testkit::history::{FencedResource, What};
use fastrand::Rng;
use futures_util::FutureExt;
use std::cell::Cell;
use std::future::{Future, pending};
use std::pin::pin;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// A guard of any recipe that tells when it is lost.
pub(super) trait Grip {
    fn is_held(&self) -> bool;
    fn is_cancelled(&self) -> bool;
    fn fence(&self) -> u64;
    fn lost(&self) -> impl Future<Output = ()>;
    /// Runs a future for as long as it is held; `None` when it was lost.
    fn run<F: Future>(&self, future: F) -> impl Future<Output = Option<F::Output>>;
    fn verify(&self) -> impl Future<Output = Result<(), docent::Error>>;
    fn transaction(&self) -> Transaction;
}

/// Longest time between two looks at a guard: short against every margin.
const LOOK_MS: u64 = 12;

/// Holds longer than this are meant to outlast something.
const LONG: Duration = Duration::from_millis(60);

/// Somebody who works at a fenced resource while they hold something, and looks at the guard all the time.
#[derive(Debug)]
pub(super) struct Worker<'a> {
    pub(super) place: &'a Place,
    pub(super) record: &'a Record,
    /// The path of what is held.
    pub(super) path: &'a str,
    pub(super) resource: &'a FencedResource,
    /// Whether the loss of the guard was written down.
    pub(super) told: Cell<bool>,
}

impl Worker<'_> {
    /// Works for `span`, or until the guard is lost and some time after that.
    pub(super) async fn work<G: Grip>(&self, guard: &G, span: Duration, rng: &mut Rng) {
        // Some stop at once when it is lost, some look again, and few for long.
        let linger = [0.0, 0.0, 0.0, 0.5, 0.5, 2.5][rng.usize(..6)] * rng.f64();
        let linger = self.place.setting.timeout.mul_f64(linger);
        let only_reads = rng.u8(..3) == 0;
        let span = if only_reads && span > LONG { span.mul_f64(1.0 + rng.f64()) } else { span };
        let reading =
            if only_reads { self.read_on(rng.fork()).left_future() } else { pending().right_future() };
        let mut reading = pin!(reading);
        let mut steps = pin!(self.steps(guard, Instant::now() + span, linger, only_reads, rng));
        let mut lost = pin!(guard.lost());
        loop {
            tokio::select! {
                biased;
                () = &mut lost, if !self.told.get() => self.tell(),
                () = &mut steps => return,
                () = &mut reading => {}
            }
        }
    }

    /// Reads so often that the client has no other reason to send anything, and waits for nothing that a server needs its leader
    /// for.
    async fn read_on(&self, mut rng: Rng) {
        let timeout = self.place.setting.timeout;
        let client = self.place.client.with_operation_timeout(timeout / 3);
        loop {
            // What it says is of no interest.
            let _ = client.exists(WRITTEN).await;
            sleep(timeout.mul_f64(0.02 + 0.12 * rng.f64())).await;
        }
    }

    /// Looks and uses until then, or for `linger` after it was told to be lost.
    async fn steps<G: Grip>(
        &self,
        guard: &G,
        mut until: Instant,
        linger: Duration,
        only_reads: bool,
        rng: &mut Rng,
    ) {
        let mut told = self.told.get();
        loop {
            self.step(guard, only_reads, rng).await;
            sleep(Duration::from_millis(rng.u64(1..=LOOK_MS))).await;
            if !std::mem::replace(&mut told, self.told.get()) && told {
                until = until.min(Instant::now() + linger);
            }
            if Instant::now() >= until {
                return;
            }
        }
    }

    /// Works by the guard's own `run`, which stops the work.
    pub(super) async fn run<G: Grip>(&self, guard: &G, span: Duration, rng: &mut Rng) {
        let work = async {
            let until = Instant::now() + span;
            while Instant::now() < until {
                self.use_resource(guard);
                sleep(Duration::from_millis(rng.u64(1..=LOOK_MS))).await;
            }
        };
        if guard.run(work).await.is_none() {
            self.tell();
        }
        self.look(guard);
    }

    /// A look, and mostly something done with the guard after it.
    async fn step<G: Grip>(&self, guard: &G, only_reads: bool, rng: &mut Rng) {
        if !self.look(guard) {
            return;
        }
        match rng.u8(..32) {
            0 if !only_reads => self.verify(guard).await,
            1 if !only_reads => self.commit(guard, rng).await,
            2..=12 => self.use_resource(guard),
            13..=16 => {
                // What is on its way to the resource cannot be called back.
                sleep(Duration::from_millis(rng.u64(..5))).await;
                self.use_resource(guard);
            }
            _ => {}
        }
    }

    fn tell(&self) {
        if !self.told.replace(true) {
            self.record.write(What::Lost(self.record.id()));
        }
    }

    fn look<G: Grip>(&self, guard: &G) -> bool {
        let (held, cancelled) = (guard.is_held(), guard.is_cancelled());
        self.record.write(What::Looked { attempt: self.record.id(), held, cancelled });
        held
    }

    fn use_resource<G: Grip>(&self, guard: &G) {
        let used = self.resource.use_with(self.path, guard.fence());
        self.record.write(What::Used(self.record.id(), used));
    }

    async fn verify<G: Grip>(&self, guard: &G) {
        let held = match guard.verify().await {
            Ok(()) => Some(true),
            Err(error) if matches!(error.kind(), docent::ErrorKind::Lost(_)) => Some(false),
            Err(_) => None,
        };
        self.record.write(What::Verified { attempt: self.record.id(), held });
    }

    /// Creates a node that names the attempt, if the guard holds.
    async fn commit<G: Grip>(&self, guard: &G, rng: &mut Rng) {
        let node = format!("{WRITTEN}/{}-{:08x}", self.record.id(), rng.u32(..));
        let applied = match guard.transaction().create(&node, "", CreateMode::Persistent).commit().await {
            Ok(_) => Some(true),
            Err(error) if error.may_have_applied() => None,
            Err(_) => Some(false),
        };
        self.record.write(What::Committed { attempt: self.record.id(), applied });
    }
}

/// Where guarded transactions create their nodes.
pub(super) const WRITTEN: &str = "/written";
