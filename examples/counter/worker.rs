use crate::cli::Job;
use crate::ledger::Ledger;
use crate::line::Line;
use crate::parent_exit::exit_with_parent;
use anyhow::ensure;
use docent::locks::MutexGuard;
use docent::{Fence, Lost, Mutex, Released};
use std::time::Duration;
use tokio::time::sleep;

/// Adds 1 to the number in the file, `increments` times, each time under the lock.
pub(crate) async fn run(job: &Job, increments: u32) -> anyhow::Result<()> {
    exit_with_parent(&job.file);
    let client = job.servers.client().connect().await?;
    let mutex = Mutex::new(&client, &job.lock)?;
    let mut done = 0;
    while done < increments {
        let guard = mutex.acquire().await?;
        if added_one(job, &guard).await? {
            println!("{}", Line::Done(guard.fence()));
            done += 1;
        }
        release(guard).await?;
    }
    client.close().await;
    Ok(())
}

/// Returns false if the lock was lost before the write: nothing is written or acknowledged, and the worker
/// tries again.
async fn added_one(job: &Job, guard: &MutexGuard) -> anyhow::Result<bool> {
    let written = match guard.run(add_one(job, guard.fence())).await {
        Ok(written) => written?,
        Err(Lost { .. }) => false,
    };
    ensure!(written || !guard.is_held(), "a later holder wrote while this process held the lock");
    Ok(written)
}

/// Reads, adds, writes. `guard.run` checks before each part whether the lock is still held.
///
/// The write is deliberately a blocking one. A write on another thread, as by `tokio::fs`, would continue
/// after the future that waits for it was dropped because the lock was lost.
async fn add_one(job: &Job, fence: Fence) -> anyhow::Result<bool> {
    let number = Ledger::read(&job.file)?.number;
    think().await;
    Ledger::replace(&job.file, number + 1, fence)
}

/// Waits between read and write. Without the lock, other processes would interfere in this time.
async fn think() {
    sleep(Duration::from_millis(1)).await;
}

/// Releases a lock even if it was lost; its work was completed or dropped before.
async fn release(guard: MutexGuard) -> anyhow::Result<()> {
    match guard.release().await {
        // If no server answers, the client deletes the lock's node in the background.
        Ok(Released::Done | Released::Pending) => Ok(()),
        Err(error) if error.is_lost() => Ok(()),
        Err(error) => Err(error.into()),
    }
}
