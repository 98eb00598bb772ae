//! A service that was copied from the pages, in a separate process, survives what happens to every service.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue fails")]

mod page;
mod process;

use docent::{Client, Config, Queue, Registry};
use docent_battery::{Backend, ServerOptions, TestServer, both_backends_in_real_time};
use docent_tests::until;
use process::Process;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Duration of an outage in seconds. The default is a scaled one, with timeouts that are scaled as well.
const OUTAGE: &str = "DOCENT_OUTAGE_SECONDS";

#[derive(Serialize, Deserialize)]
struct Job {
    id: u64,
}

/// Timeouts of the service, and the outage that they belong to.
#[derive(Clone, Copy)]
struct Times {
    session: Duration,
    operation: Duration,
    outage: Duration,
}

impl Times {
    /// A session, an operation and an acquire end during the outage.
    const SCALED: Self = Self {
        session: Duration::from_secs(4),
        operation: Duration::from_secs(3),
        outage: Duration::from_secs(10),
    };

    /// The times of the outage: scaled, or the defaults of a client.
    fn of_outage() -> Self {
        let Ok(seconds) = std::env::var(OUTAGE) else { return Self::SCALED };
        Self {
            session: Duration::from_secs(20),
            operation: Duration::from_secs(15),
            outage: Duration::from_secs(seconds.parse().unwrap()),
        }
    }
}

/// The servers, the service, and an operator.
struct Scene {
    service: Process,
    client: Client,
    server: TestServer,
    rounds: u32,
}

impl Scene {
    async fn set(backend: Backend, name: &str, times: Times) -> Self {
        let server = backend
            .start_own_with(ServerOptions::default().session_timeouts(times.session, Duration::from_secs(60)))
            .await;
        let client = docent_tests::connect(&server).await;
        let service = Process::start(&server, &format!("{name}-{backend:?}"), times.session, times.operation);
        let mut scene = Self { service, client, server, rounds: 0 };
        scene.works().await;
        scene
    }

    /// Waits until the service does each of its tasks once more.
    async fn works(&mut self) {
        self.rounds += 1;
        let (limit, id) = (1_000 + self.rounds, u64::from(self.rounds));
        let seen = self.service.printed();
        Config::<u32>::new(&self.client, "/config/limits").unwrap().publish(&limit).await.unwrap();
        Queue::<Job>::new(&self.client, "/queues/jobs").unwrap().put(&Job { id }).await.unwrap();
        for line in [&format!("limit {limit}"), &format!("resized {id}"), "report ", "leads ", "resized 0"] {
            self.service.prints_after(seen, line).await;
        }
        let registry = Registry::new(&self.client, "/services").unwrap();
        let orders = registry.service("orders").await.unwrap();
        until(async || orders.instances().iter().any(|instance| instance.id == "host-7")).await;
    }

    /// Stops the service with SIGTERM.
    async fn ends(self) {
        let status = self.service.terminate().await;
        assert!(status.success(), "{status}");
    }
}

both_backends_in_real_time! {
    async fn the_service_survives_a_killed_server(backend: Backend) {
        let mut scene = Scene::set(backend, "killed-server", Times::SCALED).await;
        scene.server.stop().await;
        scene.server.start_again().await;
        scene.works().await;
        scene.ends().await;
    }

    async fn the_service_survives_a_long_outage(backend: Backend) {
        let times = Times::of_outage();
        let mut scene = Scene::set(backend, "outage", times).await;
        scene.server.stop().await;
        tokio::time::sleep(times.outage).await;
        scene.server.start_again().await;
        scene.works().await;
        scene.ends().await;
    }

    async fn the_service_survives_the_expiry_of_its_session(backend: Backend) {
        let mut scene = Scene::set(backend, "expiry", Times::SCALED).await;
        let node = scene.client.exists("/services/orders/host-7").await.unwrap();
        scene.server.expire(node.unwrap().owner.unwrap()).await.unwrap();
        scene.works().await;
        scene.ends().await;
    }

    async fn the_service_ends_when_the_servers_have_just_failed(backend: Backend) {
        let scene = Scene::set(backend, "terminated-early", Times::SCALED).await;
        scene.server.stop().await;
        scene.ends().await;
    }

    async fn the_service_ends_late_in_an_outage(backend: Backend) {
        let scene = Scene::set(backend, "terminated-late", Times::SCALED).await;
        scene.server.stop().await;
        scene.service.logs("session is lost").await;
        scene.ends().await;
    }
}
