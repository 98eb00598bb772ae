use super::workload::COUNTER;
use crate::workload::ClientCtx;
use crate::workload::abandon::abandon_at;
use docent::config::{CounterError, PublishError, Snapshot};
use docent::{Config, Counter};
use docent_checker::{AttemptId, EventKind, FaultKind, Outcome, Publishing, Way};
use fastrand::Rng;
use std::cell::Cell;
use std::ops::ControlFlow;
use tokio::time::timeout;

/// Publishes in one of the possible ways. Breaks if the client is closed.
pub(super) async fn publish(ctx: &ClientCtx, config: &Config<u64>, rng: &mut Rng) -> ControlFlow<()> {
    let number = ctx.recorder.attempt().0;
    let way = match rng.u8(..10) {
        0..=3 => Way::Replace(number),
        4..=6 => {
            // The seen value may be outdated by the time of the call.
            let Ok(seen) = config.get().await else { return ControlFlow::Continue(()) };
            if rng.bool() {
                tokio::time::sleep(ctx.setting.span(rng) / 4).await;
            }
            return replace_seen(ctx, config, number, seen, rng).await;
        }
        7 | 8 => return again(ctx, config, rng).await,
        _ => Way::Delete,
    };
    let call = Call::begin(ctx, config.path(), way);
    let done = async {
        match way {
            Way::Delete => config.delete().await.map(|deleted| match deleted {
                true => Outcome::Applied(None),
                false => Outcome::Nothing,
            }),
            _ if number.is_multiple_of(3) => {
                config.update(|_| Some(number)).await.map(|value| applied(&value))
            }
            _ => config.publish(&number).await.map(|value| applied(&Some(value))),
        }
    };
    call.finish(ctx, done, rng).await
}

async fn replace_seen(
    ctx: &ClientCtx,
    config: &Config<u64>,
    number: u64,
    seen: Option<Snapshot<u64>>,
    rng: &mut Rng,
) -> ControlFlow<()> {
    let revision = seen.as_ref().and_then(Snapshot::revision);
    let way = Way::ReplaceSeen { number, seen: revision.map(|revision| revision.mzxid) };
    let call = Call::begin(ctx, config.path(), way);
    let done = async {
        let published = match &seen {
            Some(seen) => config.publish_if(&number, seen).await,
            None => config.publish_new(&number).await,
        };
        published.map(|value| applied(&Some(value)))
    };
    call.finish(ctx, done, rng).await
}

/// Rolls back to an earlier value.
async fn again(ctx: &ClientCtx, config: &Config<u64>, rng: &mut Rng) -> ControlFlow<()> {
    let Ok(past) = config.history().await else { return ControlFlow::Continue(()) };
    let good: Vec<_> =
        past.iter().filter_map(|past| Some((past.revision, past.value.as_ref().ok()?))).collect();
    if good.is_empty() {
        return ControlFlow::Continue(());
    }
    let (revision, number) = good[rng.usize(..good.len())];
    let call = Call::begin(ctx, config.path(), Way::Republish(*number));
    let done = async { config.rollback(&revision).await.map(|value| applied(&Some(value))) };
    call.finish(ctx, done, rng).await
}

/// Increments the counter once.
pub(super) async fn count(ctx: &ClientCtx, rng: &mut Rng) -> ControlFlow<()> {
    let Ok(counter) = Counter::<i64>::new(&ctx.client, COUNTER) else { return ControlFlow::Break(()) };
    let call = Call::begin(ctx, COUNTER, Way::Count);
    let done = async {
        match counter.increment().await {
            Ok(_) => Ok(Outcome::Applied(None)),
            Err(CounterError::Core(error)) => Err(error.into()),
            Err(error) => panic!("a counter without other writers failed: {error}"),
        }
    };
    call.finish(ctx, done, rng).await
}

fn applied(value: &Option<Snapshot<u64>>) -> Outcome {
    let revision = value.as_ref().and_then(Snapshot::revision);
    revision.map_or(Outcome::Nothing, |revision| Outcome::Applied(Some(revision.mzxid)))
}

/// Records one call and its outcome.
///
/// # On drop
/// Records that a call that has not returned was cancelled. Records nothing if its process dies.
struct Call<'a> {
    ctx: &'a ClientCtx,
    id: AttemptId,
    is_recorded: Cell<bool>,
}

impl<'a> Call<'a> {
    fn begin(ctx: &'a ClientCtx, path: &str, way: Way) -> Self {
        let call = Self { ctx, id: ctx.recorder.attempt(), is_recorded: Cell::new(false) };
        call.write(Publishing::Began { path: path.to_owned(), way });
        call
    }

    /// Waits for the outcome; some calls are dropped before.
    async fn finish(
        self,
        ctx: &ClientCtx,
        done: impl Future<Output = Result<Outcome, PublishError>>,
        rng: &mut Rng,
    ) -> ControlFlow<()> {
        let done = match rng.u8(..10) {
            0 => abandon_at(rng.u32(1..12), done).await,
            1 => timeout(ctx.setting.span(rng), done).await.ok(),
            _ => Some(done.await),
        };
        let Some(done) = done else { return ControlFlow::Continue(()) };
        self.is_recorded.set(true);
        self.write(Publishing::Done(match &done {
            Ok(outcome) => *outcome,
            Err(error) if error.may_have_applied() => Outcome::Unknown,
            Err(_) => Outcome::Nothing,
        }));
        match done {
            Err(PublishError::Core(error)) => ctx.failed(&error),
            _ => ControlFlow::Continue(()),
        }
    }

    fn write(&self, step: Publishing) {
        self.ctx.recorder.write(EventKind::Published(self.id, step));
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        if !self.is_recorded.get() && !self.ctx.controls.is_dying() {
            self.ctx.recorder.write(EventKind::Fault(FaultKind::Cancelled));
        }
    }
}
