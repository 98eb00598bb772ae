//! A service made of the loops that the pages tell their readers to copy: `first_day`. Its settings come from
//! the environment. It prints a line for each report, item, term and configuration.

use docent::config::Change;
use docent::discovery::Registration;
use docent::locks::AcquireError;
use docent::queue::PutError;
use docent::{
    Client, Config, Error, ErrorKind, Fence, Instance, Leadership, Mutex, Options, Queue, Registry,
};
use docent::{Election, Subscription};
use serde::{Deserialize, Serialize};
use std::pin::pin;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

type Failure = Box<dyn std::error::Error>;
type Outcome = Result<(), Failure>;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::fmt().with_ansi(false).with_writer(std::io::stderr).init();
    let terminate = signal(SignalKind::terminate())?;
    let client = Options::from_env()?.builder()?.build()?;
    let _registration = register(&client)?;
    let limits = Config::<u32>::builder(&client, "/config/limits").default_value(100).build()?;
    let limits = limits.subscribe().await?;
    let stopped = CancellationToken::new();
    tokio::try_join!(
        report_every_minute(&client, stopped.cancelled()),
        async { Ok(work_off(&client, stopped.cancelled()).await?) },
        async { Ok(lead(&client, stopped.cancelled()).await?) },
        follow(limits),
        stop(&client, terminate, &stopped),
    )?;
    Ok(())
}

async fn report_every_minute(
    client: &Client,
    stop: impl Future<Output = ()>,
) -> Result<(), Box<dyn std::error::Error>> {
    let mutex = Mutex::new(client, "/locks/report")?;
    let mut stop = pin!(stop);
    let mut minute = tokio::time::interval(Duration::from_millis(200));
    loop {
        tokio::select! {
            biased;
            () = &mut stop => return Ok(()),
            _ = minute.tick() => {}
        }
        let guard = match mutex.acquire_timeout(Duration::from_secs(30)).await {
            Ok(guard) => guard,
            // Another process has the lock, or no server answers. The text says which.
            Err(error) if error.is_retryable() => {
                tracing::warn!(%error, "no report this minute");
                continue;
            }
            // The client is shut down.
            Err(AcquireError::Core(error)) if error.kind() == ErrorKind::Closed => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        if let Err(lost) = guard.run(write_report(guard.fence())).await {
            tracing::warn!(%lost, "the report was interrupted");
        }
        if let Err(error) = guard.release().await {
            tracing::warn!(%error, "the lock was not released in order"); // lost before, for example
        }
    }
}

async fn write_report(fence: Fence) {
    println!("report {fence}");
}

#[derive(Serialize, Deserialize)]
struct Job {
    id: u64,
}

async fn work_off(client: &Client, stop: impl Future<Output = ()>) -> Result<(), Error> {
    let jobs = Queue::<Job>::new(client, "/queues/jobs")?;
    jobs.consume(async |job: &Job| resize(job).await).concurrency(4).until(stop).await
}

async fn resize(job: &Job) -> Result<(), std::io::Error> {
    println!("resized {}", job.id);
    Ok(())
}

async fn lead(client: &Client, stop: impl Future<Output = ()>) -> Result<(), PutError> {
    let election = Election::new(client, "/election/scheduler")?;
    let jobs = Queue::<Job>::new(client, "/queues/jobs")?;
    election.run(|leadership| schedule(jobs.clone(), leadership)).retry_failures().until(stop).await
}

/// Puts jobs for as long as this process leads.
async fn schedule(jobs: Queue<Job>, leadership: Leadership) -> Result<(), PutError> {
    loop {
        println!("leads {}", leadership.fence());
        jobs.put(&Job { id: 0 }).await?;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// The instance is registered for as long as the returned handle exists.
fn register(client: &Client) -> Result<Registration, Error> {
    let me = Instance::new("orders", "10.0.0.7", 8080).id("host-7");
    Registry::new(client, "/services")?.announce(me)
}

async fn follow(mut limits: Subscription<u32>) -> Outcome {
    println!("limit {}", limits.current().value());
    while let Some(change) = limits.changed().await {
        match change {
            Ok(Change::Value(limit)) => println!("limit {}", limit.value()),
            Ok(other) => eprintln!("the last good value stays: {other:?}"),
            Err(error) => eprintln!("{error}; it is tried again"),
        }
    }
    Ok(())
}

async fn stop(client: &Client, mut terminate: Signal, stopped: &CancellationToken) -> Outcome {
    terminate.recv().await;
    stopped.cancel();
    // Longer than the test waits, which shows that the shutdown does not wait for servers.
    let report = client.shutdown(Duration::from_secs(120)).await;
    for node in &report.left {
        eprintln!("remains until its session expires: {node}");
    }
    Ok(())
}
