use crate::cable::Cable;
use crate::stage::Stage;
use anyhow::{bail, ensure};
use docent::locks::MutexGuard;
use docent::{Client, ConnectionState, Fence, Lost, Mutex};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// A disconnected holder learns that it has lost the lock before the next client in line is granted it.
pub(crate) async fn show(stage: &Stage) -> anyhow::Result<()> {
    stage.headline("Cut off: the holder learns of its loss before the next client has the lock");
    let cable = Cable::default();
    let servers = &stage.ensemble().servers;
    let holder = servers.client().identity("holder").transport(cable.clone()).connect().await?;
    let next = stage.client("next").await?;
    let guard = stage.mutex(&holder, "cut-off")?.acquire().await?;
    stage.print("holder", format_args!("acquired the lock, fence {}", guard.fence()));

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
        stage.print("cable", "is pulled: the holder can neither send nor receive");
        stage.print("cable", format_args!("the servers pass the lock on within {:?}", longest(stage)));
        Ok(Instant::now())
    };
    let (pulled, lost, (granted, fence)) = tokio::try_join!(pull, loss(stage, &guard), grant(stage, &next))?;
    compare(stage, lost - pulled, granted - pulled)?;
    ensure!(fence > guard.fence(), "fence {fence} of the next holder is not higher than the first holder's");
    ensure!(!guard.is_held(), "the first holder's guard is still held");
    Ok(())
}

/// The servers end a silent session up to a tick late.
fn longest(stage: &Stage) -> Duration {
    let servers = &stage.ensemble().servers;
    servers.session_timeout + servers.tick
}

/// Works while the lock is held, and returns when that ended.
async fn loss(stage: &Stage, guard: &MutexGuard) -> anyhow::Result<Instant> {
    let Err(Lost { reason }) = guard.run(work(stage)).await else {
        bail!("the work ended without a loss of the lock")
    };
    let lost = Instant::now();
    stage.print("holder", format_args!("stops its work; the lock is lost: {reason}"));
    Ok(lost)
}

async fn work(stage: &Stage) {
    for part in 1.. {
        sleep(Duration::from_secs(1)).await;
        stage.print("holder", format_args!("works under the lock, part {part}"));
    }
}

async fn grant(stage: &Stage, mutex: &Mutex) -> anyhow::Result<(Instant, Fence)> {
    let guard = mutex.acquire().await?;
    let granted = Instant::now();
    stage.print("next", format_args!("acquired the lock, fence {}", guard.fence()));
    let fence = guard.fence();
    guard.release().await?;
    Ok((granted, fence))
}

fn compare(stage: &Stage, lost: Duration, granted: Duration) -> anyhow::Result<()> {
    let (lost_s, granted_s) = (lost.as_secs_f64(), granted.as_secs_f64());
    ensure!(
        lost < granted,
        "the next client had the lock after {granted_s:.3} s, but the holder learned of its loss after {lost_s:.3} s"
    );
    let ahead = (granted - lost).as_secs_f64();
    stage.print(
        "tour",
        format_args!("since the cut: loss known after {lost_s:.3} s, next grant after {granted_s:.3} s, {ahead:.3} s apart"),
    );
    Ok(())
}

/// The lock is lost permanently, but the client is not: it opens a new session automatically.
async fn heal(stage: &Stage, client: &Client) -> anyhow::Result<()> {
    stage.print("cable", "is plugged in again");
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
        bail!("the client did not reconnect")
    };
    stage.print("holder", format_args!("reconnected with its session number {generation}"));
    Ok(())
}
