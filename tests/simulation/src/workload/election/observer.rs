use super::workload::{Contest, ElectionWorkload, number};
use crate::workload::ClientCtx;
use crate::workload::record::Call;
use docent::election::Leader;
use docent::{Error, ErrorKind};
use docent_checker::{AttemptId, EventKind, Observing};
use fastrand::Rng;
use futures_util::StreamExt;
use std::ops::ControlFlow;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// Observes the elections in every possible way, until the client is closed.
pub(super) async fn observe(workload: &ElectionWorkload, ctx: &ClientCtx, mut rng: Rng) {
    loop {
        let contest = &workload.contests[rng.usize(..workload.contests.len())];
        let done = match rng.u8(..4) {
            0 => read_leader(workload, contest, ctx, &mut rng).await,
            _ => watch(workload, contest, ctx, &mut rng).await,
        };
        if done.is_break() {
            return;
        }
        sleep(ctx.setting.timeout.mul_f64(rng.f64())).await;
    }
}

/// Asks for the leader once, with a deadline.
async fn read_leader(
    workload: &ElectionWorkload,
    contest: &Contest,
    ctx: &ClientCtx,
    rng: &mut Rng,
) -> ControlFlow<()> {
    let within = ctx.setting.span(rng);
    let client = ctx.client.with_operation_timeout(within);
    let Ok(election) = docent::Election::builder(&client, &contest.path).layout(workload.layout).build()
    else {
        return ControlFlow::Break(());
    };
    let sight = Sight::new(ctx);
    sight.write(Observing::Reads(contest.path.clone()));
    let first: Result<Option<u64>, Error> = if rng.bool() {
        let call = Call::begin(ctx, "leader", within);
        let leader = election.leader().await;
        call.returned(outcome(leader.as_ref().err()));
        leader.map(|leader| leader.map(|leader| leader.fence.as_u64()))
    } else {
        let call = Call::begin(ctx, "candidates", within);
        let candidates = election.candidates().await;
        call.returned(outcome(candidates.as_ref().err()));
        candidates.map(|candidates| candidates.first().map(|first| first.fence.as_u64()))
    };
    match first {
        Ok(first) => sight.write(Observing::Shown(first)),
        Err(error) if error.kind() == ErrorKind::Closed => return ControlFlow::Break(()),
        Err(_) => {}
    }
    ControlFlow::Continue(())
}

fn outcome(error: Option<&Error>) -> String {
    error.map_or_else(|| "ok".to_owned(), |error| format!("{:?}", error.kind()))
}

/// Follows the leader for a while. Some observers are slow.
async fn watch(
    workload: &ElectionWorkload,
    contest: &Contest,
    ctx: &ClientCtx,
    rng: &mut Rng,
) -> ControlFlow<()> {
    let Ok(election) = workload.builder(ctx, contest).build() else { return ControlFlow::Break(()) };
    let mut leaders = election.observe();
    let sight = Sight::new(ctx);
    let span = ctx.setting.timeout.mul_f64(12.0 * rng.f64());
    let slow = if rng.u8(..4) == 0 { ctx.setting.timeout } else { Duration::ZERO };
    let watching = async {
        loop {
            sight.write(Observing::Follows(contest.path.clone()));
            let leader: Option<Leader> = match leaders.next().await {
                Some(Ok(leader)) => leader,
                Some(Err(error)) => panic!("an observer failed: {error}"),
                None => return ControlFlow::Break(()),
            };
            sight.write(Observing::Shown(leader.map(|leader| leader.fence.as_u64())));
            if !slow.is_zero() {
                sleep(slow.mul_f64(rng.f64())).await;
            }
        }
    };
    timeout(span, watching).await.unwrap_or(ControlFlow::Continue(()))
}

/// Record of an observer: the leaders that it is shown.
///
/// # On drop
/// Records the end of the observer. Records nothing if its process dies.
struct Sight<'a> {
    ctx: &'a ClientCtx,
    id: AttemptId,
}

impl<'a> Sight<'a> {
    fn new(ctx: &'a ClientCtx) -> Self {
        Self { ctx, id: number(ctx) }
    }

    fn write(&self, step: Observing) {
        self.ctx.recorder.write(EventKind::Observed(self.id, step));
    }
}

impl Drop for Sight<'_> {
    fn drop(&mut self) {
        if !self.ctx.controls.is_dying() {
            self.write(Observing::Stopped);
        }
    }
}
