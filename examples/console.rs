//! The live page of a small, busy world, on an embedded server:
//!
//! ```text
//! cargo run --example console
//! cargo run --example console -- --listen 127.0.0.1:8484
//! ```
//!
//! Open the printed address. Workers share a lock and a semaphore, the leader of an election fails now and
//! then, consumers of a queue crash and reject jobs, instances of a service come and go, and a configuration
//! is changed in stages, which gateways apply one after the other. Actions are allowed, so try them. Ctrl-C
//! ends the example.

use anyhow::{Context, ensure};
use clap::Parser;
use docent::{Client, Config, Election, Error, Instance, Membership, Mutex, Queue, Registry, Semaphore};
use docent_console::Console;
use docent_examples::{Servers, exit_code, log_to_stderr};
use serde::{Deserialize, Serialize};
use std::future::Future;
use std::io::{Write, stdout};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::ctrl_c;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// Age from which on holders and items are findings: shorter than anyone would choose for a service.
const OLD: Duration = Duration::from_secs(20);

/// Pause of a part of the world that has failed, for example because its node was deleted on the page.
const PAUSE: Duration = Duration::from_secs(1);

/// Number of dead letters from which on no more jobs are rejected.
const DEAD_LETTERS: usize = 5;

#[derive(Parser)]
struct Arguments {
    /// Loopback address of the page; port 0 chooses a free port
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
}

#[tokio::main]
async fn main() -> ExitCode {
    exit_code(run().await)
}

async fn run() -> anyhow::Result<()> {
    let Arguments { listen } = Arguments::parse();
    log_to_stderr()?;
    ensure!(listen.ip().is_loopback(), "{listen} is not a loopback address, and the page needs no password");
    let tick = Duration::from_millis(200);
    let server = docent::server::Server::builder().tick(tick).start().await?;
    let connect_string = server.connect_string().to_owned();
    let servers = Servers { connect_string, tick, session_timeout: Duration::from_secs(3) };
    let mut world = JoinSet::new();
    populate(&mut world, &servers);

    let client = servers.client().label("console").connect().await?;
    let console = Console::builder(&client).allow_actions().holder_age(OLD).head_age(OLD).build()?;
    let listener = TcpListener::bind(listen).await.with_context(|| format!("cannot listen on {listen}"))?;
    // Ignores an error, because the reader may have ended: `console | head`.
    let _ = writeln!(stdout(), "open http://{}/", listener.local_addr()?);
    let router = console.router().into_make_service_with_connect_info::<SocketAddr>();
    tokio::select! {
        served = axum::serve(listener, router) => served?,
        interrupted = ctrl_c() => interrupted?,
    }
    world.shutdown().await;
    client.close().await;
    Ok(())
}

/// Starts all parts of the world.
fn populate(world: &mut JoinSet<()>, servers: &Servers) {
    for (number, name) in ["worker-1", "worker-2", "worker-3"].into_iter().enumerate() {
        let turn = Duration::from_millis(1500 + 800 * number as u64);
        spawn(world, servers, move |servers| work(servers, name, turn));
    }
    for name in ["host-1", "host-2", "host-3"] {
        spawn(world, servers, move |servers| lead(servers, name));
    }
    spawn(world, servers, produce);
    for name in ["consumer-1", "consumer-2"] {
        spawn(world, servers, move |servers| consume(servers, name));
    }
    for (number, name) in ["orders-1", "orders-2", "orders-3"].into_iter().enumerate() {
        let up = Duration::from_secs(11 + 4 * number as u64);
        spawn(world, servers, move |servers| serve(servers, name, up));
    }
    spawn(world, servers, roll_out);
    for (number, name) in ["gateway-1", "gateway-2", "gateway-3"].into_iter().enumerate() {
        let delay = Duration::from_secs(1 + 2 * number as u64);
        spawn(world, servers, move |servers| apply_limits(servers, name, delay));
    }
}

/// Runs a part of the world again and again. It ends when it fails or plays a crash.
fn spawn<F>(world: &mut JoinSet<()>, servers: &Servers, part: impl Fn(Servers) -> F + Send + 'static)
where
    F: Future<Output = anyhow::Result<()>> + Send,
{
    let servers = servers.clone();
    world.spawn(async move {
        loop {
            if let Err(error) = part(servers.clone()).await {
                eprintln!("{error:#}");
            }
            sleep(PAUSE).await;
        }
    });
}

async fn connect(servers: &Servers, name: &str) -> Result<Client, Error> {
    servers.client().label(name).connect().await
}

/// Takes turns under a lock, and needs one of two licences to print.
async fn work(servers: Servers, name: &'static str, turn: Duration) -> anyhow::Result<()> {
    let client = connect(&servers, name).await?;
    let lock = Mutex::new(&client, "/shop/report")?;
    let licences = Semaphore::new(&client, "/shop/licences", 2)?;
    let _member = Membership::new(&client, "/shop/workers")?.join(name, name).await?;
    loop {
        let guard = lock.acquire().await?;
        // The page can ask the holder to leave, or delete the holder's node.
        tokio::select! {
            () = sleep(turn) => {}
            () = guard.revoked() => {}
            _ = guard.lost() => {}
        }
        guard.release().await?;
        let permit = licences.acquire().await?;
        sleep(turn / 2).await;
        permit.release().await?;
    }
}

/// Leads in turn. Every second term ends with a failure of the leader.
async fn lead(servers: Servers, name: &str) -> anyhow::Result<()> {
    const TERM: Duration = Duration::from_secs(25);
    let client = connect(&servers, name).await?;
    let election = Election::builder(&client, "/shop/scheduler").id(name).build()?;
    let leadership = election.campaign().await?;
    let _ = timeout(TERM, leadership.lost()).await;
    leadership.resign().await?;

    let leadership = election.campaign().await?;
    let _ = timeout(TERM / 2, leadership.lost()).await;
    // Same effect as a crash, once the session has ended.
    client.close().await;
    Ok(())
}

/// Puts a burst of jobs every few seconds.
async fn produce(servers: Servers) -> anyhow::Result<()> {
    let client = connect(&servers, "producer").await?;
    let jobs = Queue::<u64>::new(&client, "/shop/jobs")?;
    for first in (1_u64..).step_by(12) {
        jobs.put_all(&(first..first + 12).collect::<Vec<_>>()).await?;
        sleep(Duration::from_secs(10)).await;
    }
    Ok(())
}

/// Works on jobs. Some cannot be done, and some crash their consumer.
async fn consume(servers: Servers, name: &str) -> anyhow::Result<()> {
    let client = connect(&servers, name).await?;
    let jobs = Queue::<u64>::new(&client, "/shop/jobs")?;
    loop {
        let delivery = jobs.take().await?;
        sleep(Duration::from_millis(1200)).await;
        let job = *delivery.item();
        let is_first = delivery.deliveries().unwrap_or(1) == 1;
        if job % 15 == 0 && is_first {
            // The item goes to the other consumer.
            client.close().await;
            return Ok(());
        }
        if job % 20 == 7 && jobs.dead_letters().list().await?.len() < DEAD_LETTERS {
            delivery.reject("no such customer").await?;
        } else {
            delivery.ack().await?;
        }
    }
}

/// Announces an instance for a while.
async fn serve(servers: Servers, id: &str, up: Duration) -> anyhow::Result<()> {
    const DOWN: Duration = Duration::from_secs(6);
    let client = connect(&servers, id).await?;
    let port = 8080 + u16::from(id.as_bytes().last().copied().unwrap_or_default() - b'0');
    let instance = Instance::new("orders", "10.0.0.7", port).id(id).payload(["zone-a"]);
    let registration = Registry::new(&client, "/services")?.register(instance).await?;
    sleep(up).await;
    registration.deregister().await?;
    client.close().await;
    sleep(DOWN).await;
    Ok(())
}

/// Limits of a service, and the share of customers for whom they already hold.
#[derive(Debug, Serialize, Deserialize)]
struct Limits {
    per_second: u32,
    percent_of_customers: u32,
}

/// Publishes new limits for more and more customers.
async fn roll_out(servers: Servers) -> anyhow::Result<()> {
    let client = connect(&servers, "operator").await?;
    let limits = Config::<Limits>::builder(&client, "/shop/limits").history(10).build()?;
    for per_second in (100..1_000).step_by(50) {
        for percent_of_customers in [5, 25, 100] {
            limits.publish(&Limits { per_second, percent_of_customers }).await?;
            sleep(Duration::from_secs(8)).await;
        }
    }
    Ok(())
}

/// Applies new limits some time after they were published, and reports which ones it runs.
async fn apply_limits(servers: Servers, id: &str, delay: Duration) -> anyhow::Result<()> {
    let client = connect(&servers, id).await?;
    let limits = Config::<Limits>::new(&client, "/shop/limits")?;
    let mut subscription = limits.subscribe_when_published().await?;
    let running = limits.report_as(id)?;
    running.set(&subscription.current())?;
    while subscription.changed().await.is_some() {
        sleep(delay).await;
        running.set(&subscription.current())?;
    }
    Ok(())
}
