use super::publish::broken;
use crate::workload::Place;
use crate::workload::shown::Shown;
use docent::Config;
use docent::config::{Change, Snapshot, SubscribeError};
use docent_checker::Following;
use fastrand::Rng;
use std::ops::ControlFlow;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// Follows a value for a while, some to the end. Breaks when the client is closed.
pub(super) async fn subscribe(place: &Place, config: &Config<u64>, rng: &mut Rng) -> ControlFlow<()> {
    let span = place.setting.timeout.mul_f64(20.0 * rng.f64());
    let to_the_end = rng.bool();
    let slow = if rng.u8(..4) == 0 { place.setting.timeout } else { Duration::ZERO };
    let enough = async {
        if !to_the_end && timeout(span, place.stop.cancelled()).await.is_err() {
            return;
        }
        place.stop.cancelled().await;
        // Caches must have read again by then.
        sleep(place.setting.timeout * 4 + Duration::from_secs(25)).await;
    };
    tokio::select! {
        done = follow(place, config, slow) => done,
        () = enough => ControlFlow::Continue(()),
    }
}

async fn follow(place: &Place, config: &Config<u64>, slow: Duration) -> ControlFlow<()> {
    let mut subscription = match config.subscribe().await {
        Ok(subscription) => subscription,
        Err(SubscribeError::Core(error)) => return broken(&error),
        Err(_) => return ControlFlow::Continue(()),
    };
    let shown = Shown::begin(place, config.path());
    shown.write(saw(&subscription.current()));
    while let Some(change) = subscription.changed().await {
        match change {
            Change::Value(snapshot) => shown.write(saw(&snapshot)),
            Change::Deleted => shown.write(Following::Missing),
            Change::Refused(_) => shown.write(Following::Refused),
            // Servers here are not restored from older data.
            _ => {}
        }
        // After that it shows the last one, and not all of them; a pause that lasts to the end would hide
        // that.
        if !slow.is_zero() && !place.stop.is_cancelled() {
            let _ = timeout(slow, place.stop.cancelled()).await;
        }
    }
    ControlFlow::Break(())
}

fn saw(snapshot: &Snapshot<u64>) -> Following {
    let zxid = snapshot.revision().map_or(0, |revision| revision.mzxid);
    Following::Saw { number: *snapshot.value(), zxid }
}
