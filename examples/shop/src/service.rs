//! The life of one copy: start, serve, drain, stop.

use crate::policy::{self, Policy};
use crate::settings::Settings;
use crate::stock::Stock;
use crate::{http, restock, telemetry};
use anyhow::Context;
use docent::client::ShutdownReport;
use docent::discovery::Registration;
use docent::{Client, Election, Instance, Registry, Subscription};
use metrics_exporter_prometheus::PrometheusHandle;
use serde_json::{Value, json};
use std::fmt::Display;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Maximum time from SIGTERM to the end of the session. Together with the last requests it is well below the
/// 30 s after which Kubernetes kills a container.
const DEADLINE: Duration = Duration::from_secs(8);

/// Time for in-flight requests, and for callers that have not learned of the drain yet.
const DRAIN: Duration = Duration::from_secs(1);

/// Maximum time for the last requests.
const LAST_REQUESTS: Duration = Duration::from_secs(1);

/// Maximum number of concurrent requests; further ones are refused.
const PLACES: usize = 200;

/// State of a copy, which its parts share.
#[derive(Debug)]
pub struct Shop {
    /// Name of the copy.
    pub name: String,
    /// Client with the copy's session.
    pub client: Client,
    /// Database of the stock.
    pub stock: Stock,
    /// Terms of sale.
    pub policy: Subscription<Policy>,
    /// Permits for concurrent requests.
    pub places: Semaphore,
    /// Metrics of the copy.
    pub metrics: PrometheusHandle,
    registration: Registration,
    election: Election,
    draining: AtomicBool,
}

impl Shop {
    async fn open(settings: &Settings, address: SocketAddr) -> anyhow::Result<Arc<Self>> {
        let metrics = telemetry::install()?;
        // Does not wait for the servers: a copy starts even during an outage.
        let client = settings.coordination.client(&settings.name).build()?;
        let policy = policy::config(&client)?.subscribe().await?;
        let stock = Stock::open(&settings.database)?;
        let election = restock::election(&client, &settings.name)?;
        let instance = Instance::new("shop", address.ip().to_string(), address.port()).id(&settings.name);
        // The socket is already listening. From here on callers may pick this copy.
        let registration =
            Registry::builder(&client, "/services").drain(DRAIN).build()?.announce(instance)?;
        Ok(Arc::new(Self {
            name: settings.name.clone(),
            client,
            stock,
            policy,
            places: Semaphore::new(PLACES),
            metrics,
            registration,
            election,
            draining: AtomicBool::new(false),
        }))
    }

    /// Returns true until the copy drains.
    pub fn is_open(&self) -> bool {
        !self.draining.load(Ordering::Relaxed)
    }

    /// Returns the state of the copy, for `/readyz`.
    pub fn readiness(&self) -> Value {
        json!({
            "copy": self.name,
            "ready": self.is_open(),
            "servers": self.client.health(),
            "registration": self.registration.status().to_string(),
            "leads": self.election.is_leader(),
            "policy": self.policy.current().value(),
            "policy_is_stale": self.policy.is_stale(),
        })
    }
}

/// Runs a copy from start to stop.
///
/// # Errors
/// If the copy cannot start, or a part of it fails.
pub async fn run(settings: Settings) -> anyhow::Result<()> {
    // Installed first, so that a SIGTERM during the start does not simply end the process.
    let terminate = signal(SignalKind::terminate())?;
    if settings.leash {
        wake_at_the_end_of_the_launcher()?;
    }
    let listener = TcpListener::bind(settings.listen).await?;
    let shop = Shop::open(&settings, listener.local_addr()?).await?;
    print_line(format_args!("{} serves on {}", shop.name, listener.local_addr()?));
    let closing = CancellationToken::new();
    let mut serving = tokio::spawn(serve(listener, Arc::clone(&shop), closing.clone()));
    let mut leading = tokio::spawn(lead(Arc::clone(&shop), closing.clone()));

    tokio::select! {
        () = stop_requested(terminate, settings.leash) => {}
        ended = &mut serving => ended??,
        ended = &mut leading => ended??,
    }
    shop.draining.store(true, Ordering::Relaxed);
    // Callers no longer pick this copy, it resigns, and its session ends. Meanwhile requests are still
    // answered.
    let report = shop.client.shutdown(DEADLINE).await;
    closing.cancel();
    let _ = timeout(LAST_REQUESTS, async { tokio::join!(serving, leading) }).await;
    print_line(format_args!("{} has stopped, leaving {}", shop.name, remaining_nodes(&report)));
    Ok(())
}

/// Returns the nodes that stay until the session expires, because the servers could not be reached.
fn remaining_nodes(report: &ShutdownReport) -> String {
    let nodes: Vec<_> = report.left.iter().map(|node| node.path.as_str()).collect();
    if nodes.is_empty() { "nothing".to_owned() } else { nodes.join(", ") }
}

/// Answers requests until `closing`, and completes in-flight requests.
async fn serve(listener: TcpListener, shop: Arc<Shop>, closing: CancellationToken) -> anyhow::Result<()> {
    let closing = closing.cancelled_owned();
    axum::serve(listener, http::router(shop)).with_graceful_shutdown(closing).await.context("serving")
}

/// Campaigns until `closing`, and works in each term. Outages are waited out.
async fn lead(shop: Arc<Shop>, closing: CancellationToken) -> anyhow::Result<()> {
    let work = |leadership| {
        let shop = Arc::clone(&shop);
        async move { restock::work(&shop, leadership).await }
    };
    shop.election.run(work).until(closing.cancelled()).await.context("leading")
}

/// Resolves on SIGTERM and, with `leash`, at the end of the standard input.
async fn stop_requested(mut terminate: Signal, leash: bool) {
    tokio::select! {
        _ = terminate.recv() => tracing::info!("received SIGTERM; stopping"),
        () = input_ends(), if leash => tracing::info!("the launcher closed the standard input; stopping"),
    }
}

/// Makes the kernel resume a suspended copy (SIGSTOP) when the process that started it ends, even by SIGKILL.
/// The copy then notices the end of its standard input.
#[cfg(target_os = "linux")]
fn wake_at_the_end_of_the_launcher() -> anyhow::Result<()> {
    Ok(rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::CONT))?)
}

#[cfg(not(target_os = "linux"))]
fn wake_at_the_end_of_the_launcher() -> anyhow::Result<()> {
    Ok(())
}

/// Reads in a dedicated thread: the runtime would wait for one of its own threads at shutdown.
async fn input_ends() {
    let (ended, end) = oneshot::channel();
    thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        let _ = ended.send(());
    });
    let _ = end.await;
}

/// Prints a line for the process that started this one, if that process still reads it.
fn print_line(what: impl Display) {
    let _ = writeln!(std::io::stdout(), "{what}");
}
