use crate::cli::Job;
use crate::leash::end_with_the_parent;
use crate::ledger::Ledger;
use crate::line::Line;
use anyhow::ensure;
use docent::locks::MutexGuard;
use docent::{ErrorKind, Fence, Lost, Mutex};
use std::time::Duration;
use tokio::time::sleep;

/// Adds 1 to the number in the file, `increments` times, each time under the lock.
pub(crate) async fn run(job: &Job, increments: u32) -> anyhow::Result<()> {
    end_with_the_parent(&job.file);
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

/// False when the lock was lost before the write: then nothing is written or acknowledged, and the worker
/// tries again.
async fn added_one(job: &Job, guard: &MutexGuard) -> anyhow::Result<bool> {
    let written = match guard.run(add_one(job, guard.fence())).await {
        Ok(written) => written?,
        Err(Lost { .. }) => false,
    };
    ensure!(written || !guard.is_held(), "a later holder wrote while this one held the lock");
    Ok(written)
}

/// Reads, adds, writes. `guard.run` looks before each part whether the lock is held.
///
/// The write is a blocking one on purpose: one handed to another thread, as by `tokio::fs`, goes on when the
/// future that waits for it was dropped because the lock is lost.
async fn add_one(job: &Job, fence: Fence) -> anyhow::Result<bool> {
    let number = Ledger::read(&job.file)?.number;
    think().await;
    Ledger::replace(&job.file, number + 1, fence)
}

/// The time between read and write, in which others would come between if there was no lock.
async fn think() {
    sleep(Duration::from_millis(1)).await;
}

/// A lock that was lost is released too; its work was done or dropped before.
async fn release(guard: MutexGuard) -> anyhow::Result<()> {
    match guard.release().await {
        Err(error) if matches!(error.kind(), ErrorKind::Lost(_)) => Ok(()),
        result => Ok(result?),
    }
}
