use crate::cable::Cable;
use crate::stage::Stage;
use anyhow::{bail, ensure};
use docent::locks::MutexGuard;
use docent::{Client, ConnectionState, Fence, Lost, Mutex};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// A holder that is cut off learns that it lost the lock before the next in line is granted it.
pub(crate) async fn show(stage: &Stage) -> anyhow::Result<()> {
    stage.headline("Cut off: the holder knows before the next one has the lock");
    let cable = Cable::default();
    let servers = &stage.ensemble().servers;
    let holder = servers.client().identity("holder").transport(cable.clone()).connect().await?;
    let next = stage.client("next").await?;
    let guard = stage.mutex(&holder, "cut-off")?.acquire().await?;
    stage.say("holder", format_args!("has the lock, fence {}", guard.fence()));

    cut(stage, &cable, guard, stage.mutex(&next, "cut-off")?).await?;
    cable.plug_in();
    heal(stage, &holder).await?;
    holder.close().await;
    next.close().await;
    Ok(())
}

async fn cut(stage: &Stage, cable: &Cable, guard: MutexGuard, next: Mutex) -> anyhow::Result<()> {
    let pull = async {
        stage.until_in_line(&next, 2).await?;
        cable.pull();
        stage.say("cable", "is pulled: nothing reaches the holder, nor does it reach anybody");
        stage.say("cable", format_args!("the servers give the lock away in up to {:?}", longest(stage)));
        Ok(Instant::now())
    };
    let (pulled, lost, (granted, fence)) = tokio::try_join!(pull, loss(stage, &guard), grant(stage, &next))?;
    compare(stage, lost - pulled, granted - pulled)?;
    ensure!(fence > guard.fence(), "fence {fence} of the next one is not above the holder's");
    ensure!(!guard.is_held(), "the holder's guard says that it is held");
    Ok(())
}

/// The servers end a silent session up to a tick late.
fn longest(stage: &Stage) -> Duration {
    let servers = &stage.ensemble().servers;
    servers.session_timeout + servers.tick
}

/// Works for as long as the lock is held, and says when that ended.
async fn loss(stage: &Stage, guard: &MutexGuard) -> anyhow::Result<Instant> {
    let Err(Lost { reason }) = guard.run(work(stage)).await else { bail!("the work ended by itself") };
    let lost = Instant::now();
    stage.say("holder", format_args!("stops its work, the lock is lost: {reason}"));
    Ok(lost)
}

async fn work(stage: &Stage) {
    for part in 1.. {
        sleep(Duration::from_secs(1)).await;
        stage.say("holder", format_args!("works under the lock, part {part}"));
    }
}

async fn grant(stage: &Stage, mutex: &Mutex) -> anyhow::Result<(Instant, Fence)> {
    let guard = mutex.acquire().await?;
    let granted = Instant::now();
    stage.say("next", format_args!("has the lock, fence {}", guard.fence()));
    let fence = guard.fence();
    guard.release().await?;
    Ok((granted, fence))
}

fn compare(stage: &Stage, lost: Duration, granted: Duration) -> anyhow::Result<()> {
    let (lost_s, granted_s) = (lost.as_secs_f64(), granted.as_secs_f64());
    ensure!(
        lost < granted,
        "the next one had the lock after {granted_s:.3} s, the holder knew after {lost_s:.3} s"
    );
    let ahead = (granted - lost).as_secs_f64();
    stage.say(
        "tour",
        format_args!("since the cut: known {lost_s:.3} s, granted {granted_s:.3} s, {ahead:.3} s apart"),
    );
    Ok(())
}

/// The lock is gone for good, the client is not: it opens a new session by itself.
async fn heal(stage: &Stage, client: &Client) -> anyhow::Result<()> {
    stage.say("cable", "is plugged in again");
    let mut state = client.state();
    let healed = async {
        loop {
            let now = state.current();
            if now == ConnectionState::Connected && now.generation > 1 {
                return now.generation;
            }
            state.changed().await;
        }
    };
    let Ok(generation) = timeout(longest(stage) * 2, healed).await else {
        bail!("the client did not come back")
    };
    stage.say("holder", format_args!("is connected again, with its session number {generation}"));
    Ok(())
}
