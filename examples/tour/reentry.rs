use crate::stage::Stage;
use anyhow::ensure;
use docent::locks::{AcquireError, Owner};
use docent::{Fence, Mutex};

/// One owner acquires a lock again that it holds; others are kept out until the last of its guards is gone.
pub(crate) async fn show(stage: &Stage) -> anyhow::Result<()> {
    stage.headline("Re-entry: one owner, three guards, one node");
    let client = stage.client("owner").await?;
    let mutex = stage.mutex(&client, "reentry")?;
    Owner::scope(outer(stage, &mutex)).await?;
    ensure!(mutex.participants().await?.is_empty(), "a node was left in the line of {}", mutex.path());
    mutex.try_acquire().await?.release().await?;
    stage.say("owner", "the last guard is gone: the lock is free");
    client.close().await;
    Ok(())
}

async fn outer(stage: &Stage, mutex: &Mutex) -> anyhow::Result<()> {
    let guard = mutex.acquire().await?;
    stage.say("outer", format_args!("has the lock, fence {}", guard.fence()));
    inner(stage, mutex, guard.fence()).await?;

    let again = guard.reenter()?;
    guard.release().await?;
    ensure!(again.is_held(), "a release of one guard let go of the lock");
    stage.say("outer", "released a guard, and still holds the lock by the one of guard.reenter()");
    others_are_kept_out(stage, mutex).await?;
    again.release().await?;
    Ok(())
}

/// Knows nothing of its caller's guard. The scope around both says that they are one owner.
async fn inner(stage: &Stage, mutex: &Mutex, outer: Fence) -> anyhow::Result<()> {
    let guard = mutex.acquire().await?;
    ensure!(guard.fence() == outer, "the nested guard has fence {}, not {outer}", guard.fence());
    stage.say("inner", format_args!("acquired it too without waiting, fence {}", guard.fence()));
    stage.show_line(mutex).await?;
    guard.release().await?;
    Ok(())
}

async fn others_are_kept_out(stage: &Stage, mutex: &Mutex) -> anyhow::Result<()> {
    match Owner::new().within(async { mutex.try_acquire().await }).await {
        Err(AcquireError::Busy(_)) => {
            stage.say("other", "is another owner in the same process: kept out");
            Ok(())
        }
        Err(error) => Err(error.into()),
        Ok(_) => anyhow::bail!("two owners held the lock"),
    }
}
