//! A catalogue with many readers and one writer. The example needs nothing installed but Rust:
//!
//! ```text
//! cargo run --example read_write_lock
//! ```
//!
//! `DOCENT_CONNECT=host:port` runs the example on a real ensemble. It ends with an error if anything that it
//! shows does not hold.

use anyhow::ensure;
use docent::locks::{AcquireError, Owner, Role};
use docent::{Client, CreateMode, RwLock};
use docent_examples::{Ensemble, clean_up, log_to_stderr, own_path};
use std::time::Duration;
use tokio::time::{sleep, timeout};

const LIMIT: Duration = Duration::from_secs(30);

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    log_to_stderr()?;
    let ensemble = Ensemble::from_env().await?;
    println!("{}", ensemble.description());
    timeout(LIMIT, show(&ensemble)).await?
}

async fn show(ensemble: &Ensemble) -> anyhow::Result<()> {
    // Each client has its own session, as if it were in another process.
    let root = own_path("read-write-lock");
    let (editor, reader) =
        (ensemble.servers.client().connect().await?, ensemble.servers.client().connect().await?);
    let (lock, readers) = (format!("{root}/lock"), format!("{root}/catalogue"));
    edit(&editor, &reader, &lock, &readers).await?;
    refuse_to_wait_for_oneself(&reader, &lock).await?;
    clean_up(&editor, &root).await?;
    reader.close().await;
    editor.close().await;
    println!("all checks passed");
    Ok(())
}

/// Writes the catalogue, downgrades to a reader of what it wrote, and lets the others read at the same time.
async fn edit(editor: &Client, reader: &Client, path: &str, catalogue: &str) -> anyhow::Result<()> {
    let (lock, other) = (RwLock::new(editor, path)?, RwLock::new(reader, path)?);
    editor.create(catalogue, "first edition", CreateMode::Persistent).await?;

    let writing = lock.write().await?;
    let waiting = tokio::spawn(other.read());
    until_in_line(&lock, 2).await?;
    println!("the editor writes with fence {}; a reader waits", writing.fence());
    // Applied only while the lock is held: a writer that has lost the lock does not overwrite later data.
    writing.transaction().set(catalogue, "second edition", None).commit().await?;

    let reading = writing.downgrade().await?;
    let also_reading = waiting.await??;
    ensure!(reading.is_held() && also_reading.is_held(), "two readers do not read at the same time");
    let read = reader.get(catalogue).await?.data;
    ensure!(read == "second edition", "the reader saw {read:?}");
    println!("the editor downgraded to a reader; both clients read {:?}", String::from_utf8_lossy(&read));

    for participant in lock.participants().await? {
        ensure!(participant.role == Role::Shared && participant.holds, "{participant:?} is not a reader");
    }
    also_reading.release().await?;
    reading.release().await?;
    Ok(())
}

/// Shows that a reader that wants to write gets an error, instead of waiting for itself.
async fn refuse_to_wait_for_oneself(client: &Client, path: &str) -> anyhow::Result<()> {
    let lock = RwLock::new(client, path)?;
    let refused = Owner::scope(async {
        let reading = lock.read().await?;
        let refused = lock.write().await;
        reading.release().await?;
        anyhow::Ok(refused)
    });
    let refused = refused.await?;
    ensure!(
        matches!(refused, Err(AcquireError::WouldDeadlock)),
        "a reader was allowed to wait for the write lock: {refused:?}"
    );
    println!("a reader that requested the write lock failed immediately: {}", AcquireError::WouldDeadlock);
    Ok(())
}

async fn until_in_line(lock: &RwLock, count: usize) -> anyhow::Result<()> {
    while lock.participants().await?.len() != count {
        sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}
