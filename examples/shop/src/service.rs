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

/// Longest time from SIGTERM to the end of the session. With the last requests it is well below the 30 s
/// after which Kubernetes kills.
const DEADLINE: Duration = Duration::from_secs(8);

/// Time for requests that are under way, and for callers that have not heard yet.
const DRAIN: Duration = Duration::from_secs(1);

/// Longest time for requests that came last.
const LAST_REQUESTS: Duration = Duration::from_secs(1);

/// Most requests at the same time; more are refused.
const PLACES: usize = 200;

/// State of a copy, which its parts share.
#[derive(Debug)]
pub struct Shop {
    /// The copy's name.
    pub name: String,
    /// Its session.
    pub client: Client,
    /// Its database.
    pub stock: Stock,
    /// Its terms of sale.
    pub policy: Subscription<Policy>,
    /// Places for requests.
    pub places: Semaphore,
    /// Its counts and times.
    pub metrics: PrometheusHandle,
    registration: Registration,
    election: Election,
    draining: AtomicBool,
}

impl Shop {
    async fn open(settings: &Settings, address: SocketAddr) -> anyhow::Result<Arc<Self>> {
        let metrics = telemetry::install()?;
        // Does not wait for the servers: a copy starts also while they are away.
        let client = settings.coordination.client(&settings.name).build()?;
        let policy = policy::config(&client)?.subscribe().await?;
        let stock = Stock::open(&settings.database)?;
        let election = restock::election(&client, &settings.name)?;
        let instance = Instance::new("shop", address.ip().to_string(), address.port()).id(&settings.name);
        // The socket listens already. From here on callers may pick this copy.
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

    /// True until it drains.
    pub fn is_open(&self) -> bool {
        !self.draining.load(Ordering::Relaxed)
    }

    /// How it stands, for `/readyz`.
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
/// When it cannot start, or a part of it fails.
pub async fn run(settings: Settings) -> anyhow::Result<()> {
    // First of all, so that a SIGTERM during the start does not just end the process.
    let terminate = signal(SignalKind::terminate())?;
    if settings.leash {
        wake_at_the_end_of_the_launcher()?;
    }
    let listener = TcpListener::bind(settings.listen).await?;
    let shop = Shop::open(&settings, listener.local_addr()?).await?;
    say(format_args!("{} serves on {}", shop.name, listener.local_addr()?));
    let closing = CancellationToken::new();
    let mut serving = tokio::spawn(serve(listener, Arc::clone(&shop), closing.clone()));
    let mut leading = tokio::spawn(lead(Arc::clone(&shop), closing.clone()));

    tokio::select! {
        () = asked_to_stop(terminate, settings.leash) => {}
        ended = &mut serving => ended??,
        ended = &mut leading => ended??,
    }
    shop.draining.store(true, Ordering::Relaxed);
    // Nobody picks it any more, it resigns, and its session ends. Requests are answered meanwhile.
    let report = shop.client.shutdown(DEADLINE).await;
    closing.cancel();
    let _ = timeout(LAST_REQUESTS, async { tokio::join!(serving, leading) }).await;
    say(format_args!("{} has stopped, leaving {}", shop.name, left(&report)));
    Ok(())
}

/// Nodes that stay until the session ends, as the servers were not there to be told.
fn left(report: &ShutdownReport) -> String {
    let nodes: Vec<_> = report.left.iter().map(|node| node.path.as_str()).collect();
    if nodes.is_empty() { "nothing".to_owned() } else { nodes.join(", ") }
}

/// Answers requests until `closing`, and finishes those that are under way.
async fn serve(listener: TcpListener, shop: Arc<Shop>, closing: CancellationToken) -> anyhow::Result<()> {
    let closing = closing.cancelled_owned();
    axum::serve(listener, http::router(shop)).with_graceful_shutdown(closing).await.context("serving")
}

/// Stands for leader until `closing`, and works in each term. Outages are waited out.
async fn lead(shop: Arc<Shop>, closing: CancellationToken) -> anyhow::Result<()> {
    let work = |leadership| {
        let shop = Arc::clone(&shop);
        async move { restock::work(&shop, leadership).await }
    };
    shop.election.run(work).until(closing.cancelled()).await.context("leading")
}

/// Resolves at SIGTERM, and with a leash at the end of standard input.
async fn asked_to_stop(mut terminate: Signal, leash: bool) {
    tokio::select! {
        _ = terminate.recv() => tracing::info!("asked to stop"),
        () = input_ends(), if leash => tracing::info!("its leash is gone"),
    }
}

/// Lets a copy that stands still (SIGSTOP) go on when the process that started it ends, also by SIGKILL: then
/// it notices the end of its leash.
#[cfg(target_os = "linux")]
fn wake_at_the_end_of_the_launcher() -> anyhow::Result<()> {
    Ok(rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::CONT))?)
}

#[cfg(not(target_os = "linux"))]
fn wake_at_the_end_of_the_launcher() -> anyhow::Result<()> {
    Ok(())
}

/// A thread of its own reads: the runtime would wait for one of its own when it is shut down.
async fn input_ends() {
    let (ended, end) = oneshot::channel();
    thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        let _ = ended.send(());
    });
    let _ = end.await;
}

/// Tells the process that started it, if that still listens.
fn say(what: impl Display) {
    let _ = writeln!(std::io::stdout(), "{what}");
}
