use crate::stage::Stage;
use anyhow::ensure;
use docent::locks::{AcquireError, Owner};
use docent::{Fence, Mutex};

/// One owner re-enters a lock that it holds; others are kept out until the last of its guards is dropped.
pub(crate) async fn show(stage: &Stage) -> anyhow::Result<()> {
    stage.headline("Re-entry: one owner, three guards, one node");
    let client = stage.client("owner").await?;
    let mutex = stage.mutex(&client, "reentry")?;
    Owner::scope(outer(stage, &mutex)).await?;
    ensure!(mutex.participants().await?.is_empty(), "a node was left in the line of {}", mutex.path());
    mutex.try_acquire().await?.release().await?;
    stage.print("owner", "the last guard was dropped; the lock is free");
    client.close().await;
    Ok(())
}

async fn outer(stage: &Stage, mutex: &Mutex) -> anyhow::Result<()> {
    let guard = mutex.acquire().await?;
    stage.print("outer", format_args!("acquired the lock, fence {}", guard.fence()));
    inner(stage, mutex, guard.fence()).await?;

    let again = guard.reenter()?;
    guard.release().await?;
    ensure!(again.is_held(), "the release of one guard released the lock");
    stage.print("outer", "released a guard, and still holds the lock through guard.reenter()");
    check_others_are_kept_out(stage, mutex).await?;
    again.release().await?;
    Ok(())
}

/// This function does not know its caller's guard. The scope around both makes them one owner.
async fn inner(stage: &Stage, mutex: &Mutex, outer: Fence) -> anyhow::Result<()> {
    let guard = mutex.acquire().await?;
    ensure!(guard.fence() == outer, "the nested guard has fence {}, not {outer}", guard.fence());
    stage.print("inner", format_args!("acquired the lock without waiting, fence {}", guard.fence()));
    stage.show_line(mutex).await?;
    guard.release().await?;
    Ok(())
}

async fn check_others_are_kept_out(stage: &Stage, mutex: &Mutex) -> anyhow::Result<()> {
    match Owner::new().within(async { mutex.try_acquire().await }).await {
        Err(AcquireError::Busy(_)) => {
            stage.print("other", "must wait: it is another owner in the same process");
            Ok(())
        }
        Err(error) => Err(error.into()),
        Ok(_) => anyhow::bail!("two owners held the lock"),
    }
}
