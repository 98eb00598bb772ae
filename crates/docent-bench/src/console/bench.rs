use super::page::Page;
use crate::docent::Docent;
use crate::inspect::requests;
use crate::samples::Samples;
use crate::server::{Kind, Process, megabytes};
use anyhow::{Context, Result};
use docent::{Client, CreateMode};
use docent_battery::Proxy;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep};

/// Number of contenders created in one transaction.
const BATCH: usize = 250;

/// Number of contenders of one session: a session may own 512 KiB of paths.
const PER_SESSION: usize = 5_000;

/// Number of contenders of each lock.
const PER_LOCK: usize = 100;

/// Interval between the changes whose latency is measured.
const MEASURED: Duration = Duration::from_millis(500);

/// Settings of the bench.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Number of contenders, in locks of 100.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(100..=100_000))]
    contenders: u32,
    /// Number of open pages in the second part.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=500))]
    pages: u32,
    /// Number of changes per second.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rate: u32,
    /// Seconds of each part.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
}

/// Measures one `docent console` on the embedded server, which runs in another process.
pub(crate) async fn run(options: Options) -> Result<()> {
    let server = Process::start(Kind::Embedded).await?;
    let proxy = Proxy::start(server.address()).await?;
    let client = Client::connect(server.address().to_string()).await?;
    client.create("/locks", "", CreateMode::Persistent).await?;
    let holders = fill(&server, options.contenders as usize).await?;
    let mut docent = Docent::start(&proxy.connect_string(), &["console", "--listen", "127.0.0.1:0"])?;
    let line: serde_json::Value = serde_json::from_str(&docent.line().await?)?;
    let address = line["url"].as_str().context("the console prints its address")?;
    let address = address.trim_start_matches("http://").trim_end_matches('/').to_owned();
    client.create("/locks/measured", "", CreateMode::Persistent).await?;
    client.create(&contender("/locks/measured", 0), "10.0.0.7", CreateMode::Ephemeral).await?;
    let contenders = options.contenders;
    println!("console bench, embedded server, {contenders} contenders, {} changes/s", options.rate);
    for pages in [1, options.pages] {
        measure(&options, pages, &address, &client, &proxy, &docent).await?;
    }
    for client in holders.into_iter().chain([client]) {
        client.close().await;
    }
    Ok(())
}

/// Measures a part with this number of open pages.
async fn measure(
    options: &Options,
    pages: u32,
    address: &str,
    client: &Client,
    proxy: &Proxy,
    docent: &Docent,
) -> Result<()> {
    let mut watched = Page::open(address, "%2Fat%2Flocks%2Fmeasured").await?;
    // The tree was read once the page shows the holder.
    while !watched.patch().await?.contains("10.0.0.7") {}
    let mut others = JoinSet::new();
    for page in 1..pages {
        let view = ["%2Flocks", "%2Fat%2Flocks%2Fn00000", "%2F", "%2Fsessions"][page as usize % 4];
        let mut page = Page::open(address, view).await?;
        others.spawn(async move { while page.patch().await.is_ok() {} });
    }
    let changing = tokio::spawn(change(client.clone(), options.contenders as usize, options.rate));
    let (end, before) = (Instant::now() + Duration::from_secs(options.seconds), requests(proxy));
    let (started, cpu) = (Instant::now(), docent.cpu()?);
    let mut latency = Samples::default();
    let waiter = contender("/locks/measured", 1);
    for number in 0_u64.. {
        if Instant::now() >= end {
            break;
        }
        let identity = format!("waiter {number}");
        let started = Instant::now();
        client.create(&waiter, identity.clone(), CreateMode::Ephemeral).await?;
        while !watched.patch().await?.contains(&identity) {}
        latency.push(started.elapsed().as_secs_f64() * 1_000.0);
        client.delete(&waiter, None).await?;
        sleep(MEASURED).await;
    }
    let seconds = started.elapsed().as_secs_f64();
    changing.abort();
    println!("\nopen pages                            {pages}");
    println!("requests to ZooKeeper, 1/s            {:.0}", (requests(proxy) - before) as f64 / seconds);
    println!("change to its event, ms               {latency}");
    println!("99 of 100 within, ms                  {:.0}", latency.quantile(0.99));
    println!("CPU of docent, cores                  {:.2}", (docent.cpu()? - cpu).as_secs_f64() / seconds);
    println!("resident memory of docent, MB         {:.1}", megabytes(docent.pid()?)?);
    Ok(())
}

/// Lets waiters join and leave locks, until it is aborted.
async fn change(client: Client, contenders: usize, rate: u32) {
    let mut ticks = interval(Duration::from_secs(1) / rate);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    for change in 0_usize.. {
        ticks.tick().await;
        let waiter = contender(&lock(change / 2 % (contenders / PER_LOCK)), PER_LOCK);
        let client = client.clone();
        // A change does not wait for the reply to the one before.
        tokio::spawn(async move {
            if change % 2 == 0 {
                let _ = client.create(&waiter, "10.0.0.8", CreateMode::Ephemeral).await;
            } else {
                let _ = client.delete(&waiter, None).await;
            }
        });
    }
}

/// Creates locks with contenders, and returns the clients whose sessions own them.
async fn fill(server: &Process, contenders: usize) -> Result<Vec<Client>> {
    let mut clients = Vec::new();
    for first in (0..contenders).step_by(PER_SESSION) {
        let client = Client::connect(server.address().to_string()).await?;
        for first in (first..contenders.min(first + PER_SESSION)).step_by(BATCH) {
            let mut transaction = client.transaction();
            for number in first..contenders.min(first + BATCH) {
                let path = lock(number / PER_LOCK);
                if number % PER_LOCK == 0 {
                    transaction = transaction.create(&path, "", CreateMode::Persistent);
                }
                let node = contender(&path, number % PER_LOCK);
                transaction = transaction.create(&node, "10.0.0.7", CreateMode::Ephemeral);
            }
            transaction.commit().await?;
        }
        clients.push(client);
    }
    Ok(clients)
}

fn lock(number: usize) -> String {
    format!("/locks/n{number:05}")
}

/// Returns the node of a contender, which is the nth in its line.
fn contender(lock: &str, nth: usize) -> String {
    format!("{lock}/_c_{:032x}-lock-{nth:010}", 0)
}
