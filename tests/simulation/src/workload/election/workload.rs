use super::candidate::Candidate;
use super::observer::observe;
use crate::workload::abandon::abandon_at;
use crate::workload::hold::{WRITTEN, Worker};
use crate::workload::pace::Pace;
use crate::workload::record::Record;
use crate::workload::{ClientCtx, Workload};
use docent::election::{ElectionBuilder, ElectionLayout};
use docent::{Election, Error, ErrorKind};
use docent_checker::{AttemptId, Candidacy, Ending, EventKind, FencedResource, Noted, Role};
use docent_server::Transaction as Committed;
use fastrand::Rng;
use futures_util::FutureExt;
use futures_util::future::{LocalBoxFuture, join_all};
use std::ops::ControlFlow;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// Folder of the elections.
const ELECTIONS: &str = "/elections";

/// Clients that campaign for terms and run for them, with work that ends in every possible way, while other
/// clients observe.
#[derive(Debug)]
pub(in crate::workload) struct ElectionWorkload {
    pub(super) contests: Vec<Contest>,
    /// Layout of all elections of a run.
    pub(super) layout: ElectionLayout,
    /// How many attempts in ten run for many terms.
    runs: u8,
    /// Whether some clients observe.
    observers: bool,
    /// Whether leaders try to lead permanently.
    pub(super) steady: bool,
    pub(super) pace: Pace,
    pub(super) resource: FencedResource,
}

/// An election, as all its candidates know it.
#[derive(Debug)]
pub(super) struct Contest {
    pub(super) path: String,
    /// Takeover delay, in sixths of the session timeout.
    delay: u32,
}

impl Contest {
    fn draw(number: usize, rng: &mut Rng) -> Self {
        Self { path: format!("{ELECTIONS}/e{number}"), delay: [0, 0, 1, 3, 6][rng.usize(..5)] }
    }

    fn delay(&self, ctx: &ClientCtx) -> Duration {
        ctx.setting.timeout * self.delay / 6
    }
}

impl ElectionWorkload {
    pub(in crate::workload) fn draw(rng: &mut Rng) -> Self {
        Self {
            contests: (0..rng.usize(1..=2)).map(|number| Contest::draw(number, rng)).collect(),
            layout: [ElectionLayout::LeaderLatch, ElectionLayout::LeaderSelector][rng.usize(..2)],
            runs: rng.u8(3..=9),
            observers: rng.u8(..3) > 0,
            steady: false,
            pace: Pace::draw(rng),
            resource: FencedResource::default(),
        }
    }

    /// Candidates of one election that lead as long as they can.
    pub(in crate::workload) fn steady(rng: &mut Rng) -> Self {
        let drawn = Self::draw(rng);
        Self { contests: drawn.contests.into_iter().take(1).collect(), steady: true, ..drawn }
    }

    pub(super) fn builder(&self, ctx: &ClientCtx, contest: &Contest) -> ElectionBuilder {
        let builder = Election::builder(&ctx.client, &contest.path).layout(self.layout);
        // Permits as many terms as possible.
        builder.takeover_delay(contest.delay(ctx)).term_interval(Duration::ZERO)
    }

    /// One candidacy and what follows. Breaks if the client is closed.
    async fn attempt(&self, ctx: &ClientCtx, rng: &mut Rng) -> ControlFlow<()> {
        let contest = &self.contests[rng.usize(..self.contests.len())];
        match self.steady || rng.u8(..10) < self.runs {
            true => self.run_for(contest, ctx, rng).await,
            false => self.campaign(contest, ctx, rng).await,
        }
    }

    /// Leads for one term, unless it gives up before.
    async fn campaign(&self, contest: &Contest, ctx: &ClientCtx, rng: &mut Rng) -> ControlFlow<()> {
        let Ok(election) = self.builder(ctx, contest).build() else { return ControlFlow::Break(()) };
        let record = Record::begin(ctx, &contest.path, Role::Exclusive, None);
        let (attempt, delay) = (record.id(), contest.delay(ctx));
        ctx.recorder.write(EventKind::Campaigned(attempt, Candidacy::Joins { attempt, bound: None, delay }));
        let campaign = election.campaign();
        let led = match rng.u8(..10) {
            0..=5 => Some(campaign.await),
            6..=8 => abandon_at(rng.u32(1..10), campaign).await,
            _ => timeout(ctx.setting.span(rng), campaign).await.ok(),
        };
        match led {
            None => record.ended(Ending::Cancelled),
            Some(Err(error)) => return failed(&record, &error),
            Some(Ok(leadership)) => {
                record.granted(leadership.path(), Some(leadership.fence().as_u64()));
                let worker = Worker::new(ctx, &record, &self.resource);
                worker.toil(&leadership, self.pace.span(ctx, rng), rng).await;
                worker.give_up(leadership, rng).await;
            }
        }
        ControlFlow::Continue(())
    }

    /// Runs for a random number of terms. Once nothing new may begin, it leads once more and stops, so that
    /// every candidate must come to lead.
    async fn run_for(&self, contest: &Contest, ctx: &ClientCtx, rng: &mut Rng) -> ControlFlow<()> {
        let grace = grace(ctx, rng);
        let Ok(election) = self.builder(ctx, contest).grace(grace).build() else {
            return ControlFlow::Break(());
        };
        let candidate = Candidate::new(self, ctx, &contest.path, grace, contest.delay(ctx));
        let enough = if self.steady { u32::MAX } else { rng.u32(1..8) };
        let (patience, way) = (ctx.setting.span(rng) * 8, if self.steady { 7 } else { rng.u8(..8) });
        let mut terms = rng.fork();
        let run = election.run(|leadership| candidate.lead(leadership, terms.fork()));
        let shutdown = async {
            match way {
                _ if self.steady => ctx.stop.cancelled().await,
                0..=4 => drop(timeout(patience, candidate.has_led(enough)).await),
                _ => candidate.has_led(enough).await,
            }
            candidate.stops();
        };
        let mut run = Box::pin(run.until(shutdown));
        // Some runs are dropped before they end.
        let done = match way {
            0 => abandon_at(rng.u32(1..40), &mut run).await,
            1 => timeout(patience / 2, &mut run).await.ok(),
            _ => Some(run.as_mut().await),
        };
        candidate.stops();
        drop(run);
        candidate.ended(done.map_or(Ok(()), |done| done))
    }
}

/// No grace, or one that fits into the margin of every possible lease.
fn grace(ctx: &ClientCtx, rng: &mut Rng) -> Duration {
    match rng.bool() {
        true => Duration::ZERO,
        false => ctx.setting.timeout.mul_f64(0.1 * rng.f64()),
    }
}

/// Records why a candidate does not lead. Breaks if the client is closed.
pub(super) fn failed(record: &Record, error: &Error) -> ControlFlow<()> {
    record.ended(Ending::Failed(format!("{:?}", error.kind())));
    match error.kind() {
        ErrorKind::Closed => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    }
}

impl Workload for ElectionWorkload {
    fn nodes(&self) -> Vec<String> {
        vec![WRITTEN.to_owned()]
    }

    fn emptied(&self) -> Vec<String> {
        self.contests.iter().map(|contest| contest.path.clone()).collect()
    }

    fn lasts(&self) -> bool {
        self.steady
    }

    fn noted(&self, journal: &[Committed]) -> Vec<Noted> {
        let note = |transaction: &Committed| {
            let contest = self.contests.iter().find(|contest| contest.path == transaction.path)?;
            let text = std::str::from_utf8(transaction.data.as_deref()?).ok()?;
            let term = text.strip_prefix("docent-term:").and_then(|term| term.parse().ok());
            Some(Noted { path: contest.path.clone(), zxid: transaction.zxid, term })
        };
        journal.iter().filter_map(note).collect()
    }

    fn run<'a>(&'a self, ctx: ClientCtx, rng: &'a mut Rng) -> LocalBoxFuture<'a, ()> {
        async move {
            let attempt = async |rng: &mut Rng| self.attempt(&ctx, rng).await;
            let tasks = self.pace.tasks(rng);
            let tasks = if self.steady { 1 } else { rng.usize(..=tasks) };
            let candidates = (0..tasks).map(|_| self.pace.task(&ctx, rng.fork(), attempt));
            let candidates: Vec<_> = candidates.collect();
            // Some clients only observe.
            let campaigning = async {
                match candidates.is_empty() {
                    true => linger(&ctx).await,
                    false => drop(join_all(candidates).await),
                }
            };
            let observers = if self.observers { rng.usize(..=2) } else { 0 };
            let observers = (0..observers).map(|_| observe(self, &ctx, rng.fork()));
            let observing = join_all(observers.collect::<Vec<_>>());
            tokio::select! {
                biased;
                () = campaigning => {}
                () = async { drop(observing.await); std::future::pending().await } => {}
            }
        }
        .boxed_local()
    }
}

/// Waits until nothing new begins, and a while longer.
async fn linger(ctx: &ClientCtx) {
    ctx.stop.cancelled().await;
    sleep(ctx.setting.timeout * 2).await;
}

/// The number of a new candidate or observer.
pub(super) fn number(ctx: &ClientCtx) -> AttemptId {
    ctx.recorder.attempt()
}
