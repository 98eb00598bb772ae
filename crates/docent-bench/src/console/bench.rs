use super::browser::Browser;
use super::fill::{self, PER_LOCK, contender, lock};
use super::page::Page;
use crate::docent::Docent;
use crate::inspect::requests;
use crate::samples::Samples;
use crate::server::{Kind, Process, megabytes};
use anyhow::{Context, Result, bail};
use docent::{Client, CreateMode};
use docent_battery::{Proxy, chromium};
use std::net::Ipv4Addr;
use std::time::{Duration, Instant, SystemTime};
use tokio::signal::ctrl_c;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep};

/// Lock whose page is measured.
const WATCHED: &str = "/locks/measured";

/// Pause before each change whose latency is measured.
const PAUSE: Duration = Duration::from_millis(500);

/// Settings of the bench.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Number of contenders, in locks of 100.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(100..=100_000))]
    contenders: u32,
    /// Number of further locks, each with one holder.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=50_000))]
    locks: u32,
    /// Number of instances, in services of 100.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=50_000))]
    instances: u32,
    /// Number of items in one queue.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=100_000))]
    items: u32,
    /// Number of open pages in the second part.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=500))]
    pages: u32,
    /// Number of changes per second.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rate: u32,
    /// Seconds of each part, and again of its page in a browser.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
}

/// What both parts are measured with.
struct Bench {
    options: Options,
    /// Host and port of the console.
    address: String,
    client: Client,
    proxy: Proxy,
    docent: Docent,
}

/// Measures one `docent console` on the embedded server, which runs in another process.
pub(crate) async fn run(options: Options) -> Result<()> {
    tokio::select! {
        measured = measure(options) => measured,
        // The browser only ends if it is dropped.
        _ = ctrl_c() => bail!("interrupted"),
    }
}

async fn measure(options: Options) -> Result<()> {
    let (contenders, pages) = (options.contenders, options.pages);
    let server = Process::start(Kind::Embedded).await?;
    let proxy = Proxy::start(server.address()).await?;
    let client = Client::connect(server.address().to_string()).await?;
    client.create("/locks", "", CreateMode::Persistent).await?;
    client.create("/single", "", CreateMode::Persistent).await?;
    let mut holders = fill::contenders(&server, contenders as usize).await?;
    holders.extend(fill::locks(&server, options.locks as usize).await?);
    fill::instances(&client, options.instances as usize).await?;
    fill::items(&client, options.items as usize).await?;
    let mut docent = Docent::start(&proxy.connect_string(), &["console", "--listen", "127.0.0.1:0"])?;
    let line: serde_json::Value = serde_json::from_str(&docent.line().await?)?;
    let address = line["url"].as_str().context("the console prints its address")?;
    let address = address.trim_start_matches("http://").trim_end_matches('/').to_owned();
    client.create(WATCHED, "", CreateMode::Persistent).await?;
    client.create(&contender(WATCHED, 0), "10.0.0.7", CreateMode::Ephemeral).await?;
    println!(
        "console bench, embedded server, {contenders} contenders, {} further locks, {} instances, {} items, {} changes/s",
        options.locks, options.instances, options.items, options.rate
    );
    if !chromium::is_installed() {
        println!("skipped the page in a browser: {}", chromium::MISSING);
    }
    let bench = Bench { options, address, client, proxy, docent };
    let (one, many) = (bench.part(1).await?, bench.part(pages).await?);
    println!("\nrequests with {pages} pages / with 1 page: {:.2}", many / one);
    for client in holders.into_iter().chain([bench.client]) {
        client.close().await;
    }
    Ok(())
}

impl Bench {
    /// Measures a part with this number of open pages, and returns its requests per second.
    async fn part(&self, pages: u32) -> Result<f64> {
        let mut watched = Page::open(&self.address, "%2Fat%2Flocks%2Fmeasured").await?;
        // The tree was read once the page shows the holder.
        while !watched.patch().await?.contains("10.0.0.7") {}
        let mut others = JoinSet::new();
        for page in 1..pages {
            let view = ["%2Flocks", "%2Fat%2Flocks%2Fn00000", "%2F", "%2Fsessions"][page as usize % 4];
            let mut page = Page::open(&self.address, view).await?;
            others.spawn(async move { while page.patch().await.is_ok() {} });
        }
        others.spawn(change(self.client.clone(), self.options.contenders as usize, self.options.rate));
        println!("\nopen pages                            {pages}");
        let requests = self.measure_events(watched).await?;
        if chromium::is_installed() {
            self.measure_pixels().await?;
        }
        Ok(requests)
    }

    /// Measures while the event stream of the measured page is read, and returns the requests per second.
    async fn measure_events(&self, mut page: Page) -> Result<f64> {
        let (started, before, cpu) = (Instant::now(), requests(&self.proxy), self.docent.cpu()?);
        let see = async |waiter: &str| {
            while !page.patch().await?.contains(waiter) {}
            Ok(SystemTime::now())
        };
        let latency = self.latency(see).await?;
        let seconds = started.elapsed().as_secs_f64();
        let requests = (requests(&self.proxy) - before) as f64 / seconds;
        let cores = (self.docent.cpu()? - cpu).as_secs_f64() / seconds;
        println!("requests to ZooKeeper, 1/s            {requests:.0}");
        println!("change to its event, ms               {latency}");
        println!("99 of 100 within, ms                  {:.0}", latency.quantile(0.99));
        println!("CPU of docent, cores                  {cores:.2}");
        println!("resident memory of docent, MB         {:.1}", megabytes(self.docent.pid()?)?);
        Ok(requests)
    }

    /// Measures while a browser shows the measured page, in place of the event stream.
    async fn measure_pixels(&self) -> Result<()> {
        let browser = Browser::open(&format!("http://{}/at{WATCHED}", self.address)).await?;
        let latency = self.latency(async |waiter: &str| browser.painted(waiter).await).await?;
        let memory = browser.memory().await?;
        println!("change to its pixel, ms               {latency}");
        println!("99 of 100 within, ms                  {:.0}", latency.quantile(0.99));
        println!("heap of the page in the browser, MB   {:.1}", memory.heap);
        println!("resident memory of its renderer, MB   {:.1}", memory.resident);
        Ok(())
    }

    /// Lets waiters join the measured lock one after the other, and returns the milliseconds until `see` has
    /// seen each of them. `see` returns the time at which it saw a waiter.
    async fn latency(&self, mut see: impl AsyncFnMut(&str) -> Result<SystemTime>) -> Result<Samples> {
        let (node, mut latency) = (contender(WATCHED, 1), Samples::default());
        let end = Instant::now() + Duration::from_secs(self.options.seconds);
        for number in 1.. {
            if Instant::now() >= end {
                break;
            }
            sleep(PAUSE).await;
            // An address, as Curator's locks have it. With another text it would be an election.
            let waiter = Ipv4Addr::from_bits(0x0a01_0000 + number).to_string();
            let started = SystemTime::now();
            self.client.create(&node, waiter.clone(), CreateMode::Ephemeral).await?;
            let seen = see(&waiter).await?.duration_since(started).context("the clock was set back")?;
            latency.push(seen.as_secs_f64() * 1_000.0);
            self.client.delete(&node, None).await?;
        }
        Ok(latency)
    }
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
