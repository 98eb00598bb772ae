use crate::docent::Docent;
use crate::samples::Samples;
use crate::server::{Kind, Process, megabytes};
use anyhow::{Result, ensure};
use docent::{Client, CreateMode};
use docent_battery::{Direction, Proxy};
use docent_proto::OpCode;
use std::ops::Range;
use std::time::{Duration, Instant};

/// Number of locks created in one transaction.
const BATCH: usize = 250;

/// Number of locks that one session holds: a session may own 512 KiB of paths.
const PER_SESSION: usize = 5_000;

/// Settings of the bench.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Number of locks, each with one holder.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    locks: u32,
    /// Number of changes, one after the other.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    changes: u32,
    /// Seconds without a change.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..))]
    idle: u64,
}

/// Measures one `docent ls --watch` on the embedded server, which runs in another process.
pub(crate) async fn run(options: Options) -> Result<()> {
    let server = Process::start(Kind::Embedded).await?;
    let proxy = Proxy::start(server.address()).await?;
    let client = Client::connect(server.address().to_string()).await?;
    client.create("/locks", "", CreateMode::Persistent).await?;
    let mut holders = Vec::new();
    for first in (0..options.locks as usize).step_by(PER_SESSION) {
        let holder = Client::connect(server.address().to_string()).await?;
        fill(&holder, first..(options.locks as usize).min(first + PER_SESSION)).await?;
        holders.push(holder);
    }

    let started = Instant::now();
    let mut lister = Docent::start(&proxy.connect_string(), &["ls", "--watch", "locks"])?;
    for _ in 0..options.locks {
        lister.line().await?;
    }
    let listed = started.elapsed();

    let before = requests(&proxy);
    tokio::time::sleep(Duration::from_secs(options.idle)).await;
    let idle = (requests(&proxy) - before) as f64 / options.idle as f64;

    let (mut latency, cpu) = (Samples::default(), lister.cpu()?);
    for change in 0..options.changes {
        // A waiter joins a lock, and leaves it with the next change.
        let lock = path((change / 2 % options.locks) as usize);
        let waiter = format!("{lock}/_c_{:032x}-lock-0000000001", 1);
        let started = Instant::now();
        if change % 2 == 0 {
            client.create(&waiter, "10.0.0.8", CreateMode::Ephemeral).await?;
        } else {
            client.delete(&waiter, None).await?;
        }
        let line = lister.line().await?;
        latency.push(started.elapsed().as_secs_f64() * 1_000.0);
        ensure!(line.contains(&format!("\"{lock}\"")), "{lock} has changed, but docent printed {line}");
    }
    let cpu = (lister.cpu()? - cpu).as_secs_f64() * 1_000.0 / f64::from(options.changes);

    println!("inspect bench, embedded server, {} locks, {} changes", options.locks, options.changes);
    println!("start to complete list, s        {:.1}", listed.as_secs_f64());
    println!("requests while idle, 1/s         {idle:.2}");
    println!("change to its line, ms           {latency}");
    println!("CPU of docent per change, ms     {cpu:.2}");
    println!("resident memory of docent, MB    {:.1}", megabytes(lister.pid()?)?);
    for client in holders.into_iter().chain([client]) {
        client.close().await;
    }
    Ok(())
}

/// Creates locks, and holds them.
async fn fill(client: &Client, locks: Range<usize>) -> Result<()> {
    for first in locks.clone().step_by(BATCH) {
        let mut transaction = client.transaction();
        for lock in (first..locks.end.min(first + BATCH)).map(path) {
            let holder = format!("{lock}/_c_{:032x}-lock-0000000000", 0);
            transaction = transaction.create(&lock, "", CreateMode::Persistent);
            transaction = transaction.create(&holder, "10.0.0.7", CreateMode::Ephemeral);
        }
        transaction.commit().await?;
    }
    Ok(())
}

fn path(lock: usize) -> String {
    format!("/locks/n{lock:05}")
}

/// Returns the number of requests so far, except for pings.
pub(crate) fn requests(proxy: &Proxy) -> usize {
    let is_request = |op: Option<OpCode>| op.is_some_and(|op| op != OpCode::Ping);
    proxy.trace().iter().filter(|it| it.direction == Direction::ToServer && is_request(it.op)).count()
}
