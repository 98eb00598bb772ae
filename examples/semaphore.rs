//! Exports of which two may run at a time, with any number of workers. The example needs nothing installed
//! but Rust:
//!
//! ```text
//! cargo run --example semaphore
//! ```
//!
//! `DOCENT_CONNECT=host:port` runs the example on a real ensemble. It ends with an error if anything that it
//! shows does not hold.

use anyhow::ensure;
use docent::locks::SharedLimit;
use docent::{Client, Semaphore};
use docent_examples::{Ensemble, clean_up, log_to_stderr, own_path};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

const LIMIT: Duration = Duration::from_secs(30);
const WORKERS: usize = 6;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    log_to_stderr()?;
    let ensemble = Arc::new(Ensemble::from_env().await?);
    println!("{}", ensemble.description());
    timeout(LIMIT, show(&ensemble)).await?
}

async fn show(ensemble: &Arc<Ensemble>) -> anyhow::Result<()> {
    let root = own_path("semaphore");
    let operator = ensemble.servers.client().connect().await?;
    let limit = SharedLimit::new(&operator, &format!("{root}/limit"), 2)?;
    println!("two exports at a time:");
    ensure!(run_all(ensemble, &root).await? == 2, "the limit of 2 was not reached, or was exceeded");
    // Current and future waiters see the new limit without any restart.
    limit.set(4).await?;
    println!("four exports at a time:");
    ensure!(run_all(ensemble, &root).await? == 4, "the limit of 4 was not reached, or was exceeded");

    let semaphore = at(&operator, &root)?;
    let all = semaphore.acquire_many(4).await?;
    ensure!(semaphore.try_acquire().await.is_err(), "there are more than four permits");
    println!("no worker exports while maintenance holds all {} permits", all.permits());
    all.release().await?;

    clean_up(&operator, &format!("{root}/exports")).await?;
    clean_up(&operator, &root).await?;
    operator.close().await;
    println!("all checks passed");
    Ok(())
}

fn at(client: &Client, root: &str) -> Result<Semaphore, docent::Error> {
    let limit = SharedLimit::new(client, &format!("{root}/limit"), 2)?;
    Semaphore::with_limit(client, &format!("{root}/exports"), &limit)
}

/// Runs one export of each worker. Returns the maximum number of exports at the same time.
async fn run_all(ensemble: &Arc<Ensemble>, root: &str) -> anyhow::Result<u32> {
    let floor = Arc::new(Floor::default());
    let mut workers = JoinSet::new();
    for number in 1..=WORKERS {
        workers.spawn(export(Arc::clone(ensemble), root.to_owned(), number, Arc::clone(&floor)));
    }
    while let Some(ended) = workers.join_next().await {
        ended??;
    }
    Ok(floor.most.load(SeqCst))
}

/// Runs a worker with its own session, as if it were in another process.
async fn export(
    ensemble: Arc<Ensemble>,
    root: String,
    number: usize,
    floor: Arc<Floor>,
) -> anyhow::Result<()> {
    let client = ensemble.servers.client().identity(format!("worker {number}")).connect().await?;
    let permit = at(&client, &root)?.acquire().await?;
    let now = floor.at_work.fetch_add(1, SeqCst) + 1;
    floor.most.fetch_max(now, SeqCst);
    println!("  worker {number} exports, {now} exports running");
    // The work stops if the permit is lost.
    permit.run(sleep(Duration::from_millis(150))).await?;
    floor.at_work.fetch_sub(1, SeqCst);
    permit.release().await?;
    client.close().await;
    Ok(())
}

/// Counts the workers that are exporting.
#[derive(Default)]
struct Floor {
    at_work: AtomicU32,
    most: AtomicU32,
}
