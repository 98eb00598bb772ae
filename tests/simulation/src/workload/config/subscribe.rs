use crate::workload::ClientCtx;
use crate::workload::follower_record::FollowerRecord;
use docent::Config;
use docent::config::{Change, Snapshot, SubscribeError};
use docent_checker::Following;
use fastrand::Rng;
use std::ops::ControlFlow;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// Follows a value for a while, or until the end of the run. Breaks if the client is closed.
pub(super) async fn subscribe(ctx: &ClientCtx, config: &Config<u64>, rng: &mut Rng) -> ControlFlow<()> {
    let span = ctx.setting.timeout.mul_f64(20.0 * rng.f64());
    let to_the_end = rng.bool();
    let slow = if rng.u8(..4) == 0 { ctx.setting.timeout } else { Duration::ZERO };
    let enough = async {
        if !to_the_end && timeout(span, ctx.stop.cancelled()).await.is_err() {
            return;
        }
        ctx.stop.cancelled().await;
        // Time for caches to re-read.
        sleep(ctx.setting.timeout * 4 + Duration::from_secs(25)).await;
    };
    tokio::select! {
        done = follow(ctx, config, slow) => done,
        () = enough => ControlFlow::Continue(()),
    }
}

async fn follow(ctx: &ClientCtx, config: &Config<u64>, slow: Duration) -> ControlFlow<()> {
    let mut subscription = match config.subscribe().await {
        Ok(subscription) => subscription,
        Err(SubscribeError::Core(error)) => return ctx.failed(&error),
        Err(_) => return ControlFlow::Continue(()),
    };
    let shown = FollowerRecord::begin(ctx, config.path());
    shown.write(saw(&subscription.current()));
    while let Some(change) = subscription.changed().await {
        match change {
            Ok(Change::Value(snapshot)) => shown.write(saw(&snapshot)),
            Ok(Change::Deleted) => shown.write(Following::Missing),
            Ok(Change::Refused(_)) => shown.write(Following::Refused),
            // Servers in the simulation are not restored from older data.
            _ => {}
        }
        // After a pause the subscription shows only the latest value. A pause that lasts until the end of the
        // run would hide that.
        if !slow.is_zero() && !ctx.stop.is_cancelled() {
            let _ = timeout(slow, ctx.stop.cancelled()).await;
        }
    }
    ControlFlow::Break(())
}

fn saw(snapshot: &Snapshot<u64>) -> Following {
    let zxid = snapshot.revision().map_or(0, |revision| revision.mzxid);
    Following::Saw { number: *snapshot.value(), zxid }
}
