//! One client in a separate process. Prints `key value` for each measure.

use crate::clients::{Bare, Client, Docent, Which, ZookeeperClient};
use crate::samples::Samples;
use crate::session::{FOLDER, IN_FLIGHT, NODE};
use anyhow::Result;
use clap::Args;
use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};

/// Number of reads in a full-length round.
const GETS: usize = 6_000;
const CREATES: usize = 3_000;
const PAIRS: usize = 750;
const FAR: usize = 30;
const GETS_IN_FLIGHT: usize = 60_000;
const CREATES_IN_FLIGHT: usize = 20_000;

/// Command line of a worker: the client it measures, and how.
#[derive(Debug, Args)]
pub(crate) struct Options {
    which: Which,
    /// Address of the server.
    address: String,
    /// Address of the server behind a slow link.
    far_address: Option<String>,
    /// Percentage of a full-length round.
    #[arg(long, default_value_t = 100)]
    percent: usize,
    /// For profilers: send only this number of gets one at a time, and this number with 256 in flight.
    #[arg(long, num_args = 2)]
    gets: Option<Vec<usize>>,
    /// For profilers: send only this number of creates one at a time, and this number with 256 in flight.
    #[arg(long, num_args = 2)]
    creates: Option<Vec<usize>>,
}

pub(crate) async fn run(options: Options) -> Result<()> {
    match options.which {
        Which::Docent => measure::<Docent>(options).await,
        Which::Bare => measure::<Bare>(options).await,
        Which::ZookeeperClient => measure::<ZookeeperClient>(options).await,
    }
}

async fn measure<C: Client>(options: Options) -> Result<()> {
    let mut client = C::connect(&options.address).await?;
    if options.gets.is_some() || options.creates.is_some() {
        only(&mut client, &options).await?;
        return client.close().await;
    }
    let scale = |count: usize| (count * options.percent / 100).max(10);
    near(&mut client, scale).await?;
    many(&mut client, scale).await?;
    client.close().await?;
    if let Some(address) = options.far_address {
        let mut client = C::connect(&address).await?;
        far(&mut client, scale(FAR)).await?;
        client.close().await?;
    }
    Ok(())
}

/// Sends only the requests that a profiler measures.
async fn only(client: &mut impl Client, options: &Options) -> Result<()> {
    let prefix = format!("{FOLDER}/line-");
    if let Some([alone, in_flight]) = options.gets.as_deref() {
        for _ in 0..*alone {
            client.get(NODE).await?;
        }
        client.get_many(NODE, *in_flight, IN_FLIGHT).await?;
    }
    if let Some([alone, in_flight]) = options.creates.as_deref() {
        for _ in 0..*alone {
            client.create(&prefix).await?;
        }
        client.create_many(&prefix, *in_flight, IN_FLIGHT).await?;
    }
    Ok(())
}

/// Measures one request at a time.
async fn near(client: &mut impl Client, scale: impl Fn(usize) -> usize) -> Result<()> {
    let (prefix, count) = (format!("{FOLDER}/line-"), scale(CREATES));
    for _ in 0..scale(GETS) / 10 {
        client.get(NODE).await?;
    }

    let (mut times, cpu) = (Vec::new(), Cpu::start());
    for _ in 0..scale(GETS) {
        let started = Instant::now();
        client.get(NODE).await?;
        times.push(started.elapsed());
    }
    print_value("get_cpu", cpu.per(scale(GETS)));
    print_latency("get", times);

    let (mut times, mut paths, cpu) = (Vec::new(), Vec::new(), Cpu::start());
    for _ in 0..count {
        let started = Instant::now();
        paths.push(client.create(&prefix).await?);
        times.push(started.elapsed());
    }
    print_value("create_cpu", cpu.per(count));
    print_latency("create", times);

    let mut times = Vec::new();
    for path in paths {
        let started = Instant::now();
        client.delete(&path).await?;
        times.push(started.elapsed());
    }
    print_latency("delete", times);
    print_latency("pair", pairs(client, scale(PAIRS)).await?);
    Ok(())
}

/// Measures requests over a slow link.
async fn far(client: &mut impl Client, count: usize) -> Result<()> {
    let mut times = Vec::new();
    for _ in 0..count {
        let started = Instant::now();
        client.get(NODE).await?;
        times.push(started.elapsed());
    }
    print_latency("far_get", times);
    print_latency("far_pair", pairs(client, count).await?);
    Ok(())
}

/// Submits a create and a listing together. The folder is empty before each pair.
async fn pairs(client: &mut impl Client, count: usize) -> Result<Vec<Duration>> {
    let prefix = format!("{FOLDER}/line-");
    let mut times = Vec::new();
    for _ in 0..count {
        let started = Instant::now();
        let path = client.create_and_list(&prefix, FOLDER).await?;
        times.push(started.elapsed());
        client.delete(&path).await?;
    }
    Ok(times)
}

/// Measures many concurrent requests.
async fn many(client: &mut impl Client, scale: impl Fn(usize) -> usize) -> Result<()> {
    let count = scale(GETS_IN_FLIGHT);
    let (started, cpu) = (Instant::now(), Cpu::start());
    client.get_many(NODE, count, IN_FLIGHT).await?;
    print_value("get_many_cpu", cpu.per(count));
    print_value("get_rate", count as f64 / started.elapsed().as_secs_f64());

    let (prefix, count) = (format!("{FOLDER}/crowd-"), scale(CREATES_IN_FLIGHT));
    let (started, cpu) = (Instant::now(), Cpu::start());
    client.create_many(&prefix, count, IN_FLIGHT).await?;
    print_value("create_many_cpu", cpu.per(count));
    print_value("create_rate", count as f64 / started.elapsed().as_secs_f64());
    Ok(())
}

fn print_value(key: &str, value: f64) {
    println!("{key} {value}");
}

fn print_latency(key: &str, times: Vec<Duration>) {
    let times: Samples = times.into_iter().map(|time| time.as_secs_f64() * 1e6).collect();
    print_value(&format!("{key}_p50"), times.median());
    print_value(&format!("{key}_p99"), times.quantile(0.99));
}

/// CPU time of all threads of this process since a point in time.
struct Cpu(Duration);

impl Cpu {
    fn start() -> Self {
        Self(Self::now())
    }

    /// Returns the microseconds for each of `count` requests.
    fn per(&self, count: usize) -> f64 {
        (Self::now() - self.0).as_secs_f64() * 1e6 / count as f64
    }

    fn now() -> Duration {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs().try_into().unwrap_or(0))
    }
}
