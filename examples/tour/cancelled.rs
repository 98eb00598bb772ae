use crate::stage::Stage;
use anyhow::ensure;
use docent::locks::{AcquireError, MutexGuard};
use docent::{Client, Mutex};
use tokio::task::JoinHandle;

/// A waiter that gives up leaves the line, and the waiters behind it move up.
pub(crate) async fn show(stage: &Stage) -> anyhow::Result<()> {
    stage.headline("Cancellation: a waiter that gives up leaves no node");
    let holder = stage.client("holder").await?;
    let mutex = stage.mutex(&holder, "cancelled")?;
    let guard = mutex.acquire().await?;
    let (first, second) = line_up(stage, &mutex).await?;
    stage.show_line(&mutex).await?;

    give_up(stage, &mutex, first).await?;
    guard.release().await?;
    stage.print("holder", "released the lock");
    let (client, guard) = second.await??;
    stage.print("waiter 2", format_args!("acquired the lock, fence {}", guard.fence()));
    guard.release().await?;
    ensure!(mutex.participants().await?.is_empty(), "a node was left in the line of {}", mutex.path());
    client.close().await;
    holder.close().await;
    Ok(())
}

type Waiting = JoinHandle<Result<(Client, MutexGuard), AcquireError>>;

/// Starts two waiters, behind the holder in this order.
async fn line_up(stage: &Stage, mutex: &Mutex) -> anyhow::Result<(Waiting, Waiting)> {
    let first = wait(stage, "waiter 1").await?;
    stage.until_in_line(mutex, 2).await?;
    let second = wait(stage, "waiter 2").await?;
    stage.until_in_line(mutex, 3).await?;
    Ok((first, second))
}

async fn wait(stage: &Stage, name: &str) -> anyhow::Result<Waiting> {
    let client = stage.client(name).await?;
    let mutex = stage.mutex(&client, "cancelled")?;
    Ok(tokio::spawn(async move {
        let guard = mutex.acquire().await?;
        Ok((client, guard))
    }))
}

/// Aborts the task, which drops the future of `acquire`, as a `select!` or a timeout would.
async fn give_up(stage: &Stage, mutex: &Mutex, waiting: Waiting) -> anyhow::Result<()> {
    waiting.abort();
    ensure!(waiting.await.is_err_and(|error| error.is_cancelled()), "the first waiter was not cancelled");
    stage.print("waiter 1", "was cancelled");
    stage.until_in_line(mutex, 2).await?;
    stage.show_line(mutex).await?;
    Ok(())
}
