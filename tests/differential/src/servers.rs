use crate::compare::{Difference, compare};
use crate::run::{Record, run};
use crate::script::Step;
use anyhow::Result;
use docent_battery::{RealServer, ServerOptions};
use docent_server::{Limits, Server};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Unit in which sessions expire, and pause between looks for containers: short, because scripts wait for
/// both.
const TICK: Duration = Duration::from_millis(100);
const TIMEOUTS: (Duration, Duration) = (Duration::from_millis(400), Duration::from_secs(120));
/// The user who may do everything, with the password `test`.
const SUPER: &str = "super:D/InIHSb7yEEbrWz8b9l71RjZJU=";

static ROOTS: AtomicU64 = AtomicU64::new(0);

/// A real server and an embedded one, with the same settings.
#[derive(Debug)]
pub struct Servers {
    real: RealServer,
    /// `None` where the real server is compared with itself.
    embedded: Option<Server>,
}

/// Starts a real server for scripts.
///
/// # Errors
/// When ZooKeeper is not installed or does not come up.
pub async fn real() -> Result<RealServer> {
    let options = ServerOptions::default()
        .tick(TICK)
        .session_timeouts(TIMEOUTS.0, TIMEOUTS.1)
        .container_check_interval(TICK)
        .extended_types(true)
        .super_digest(SUPER);
    Ok(RealServer::start_with(options).await?)
}

/// Starts an embedded server for scripts.
///
/// # Errors
/// When no port is free.
pub async fn embedded() -> Result<Server> {
    let server = Server::builder()
        .tick(TICK)
        .session_timeouts(TIMEOUTS.0, TIMEOUTS.1)
        .container_check(TICK)
        .ttl_nodes(true)
        .super_digest(SUPER)
        .limits(Limits::default().nodes(10_000_000));
    Ok(server.start().await?)
}

/// A path that no other run of this process has its nodes at. All are of one length.
fn root() -> String {
    format!("/d{:08}", ROOTS.fetch_add(1, Ordering::Relaxed))
}

/// Runs a script on the server at `address`.
///
/// # Errors
/// When the server cannot be reached or is silent.
pub(crate) async fn record(script: &[Step], address: SocketAddr) -> Result<Record> {
    run(script, address, &root()).await
}

impl Servers {
    /// Starts both.
    ///
    /// # Errors
    /// When one of them does not come up.
    pub async fn start() -> Result<Self> {
        Ok(Self { real: real().await?, embedded: Some(embedded().await?) })
    }

    /// Starts a real server alone, to be compared with itself: scripts for which that differs say nothing.
    ///
    /// # Errors
    /// When it does not come up.
    pub async fn start_real() -> Result<Self> {
        Ok(Self { real: real().await?, embedded: None })
    }

    /// Starts another embedded server in the place of the last one.
    ///
    /// # Errors
    /// When no port is free.
    pub async fn renew_embedded(&mut self) -> Result<()> {
        self.embedded = Some(embedded().await?);
        Ok(())
    }

    /// The records of a script: of the real server, and of the embedded one.
    ///
    /// # Errors
    /// When one of them cannot be reached or is silent.
    pub async fn records(&self, script: &[Step]) -> Result<(Record, Record)> {
        let real = record(script, self.real.address());
        let embedded = record(script, self.embedded.as_ref().map_or(self.real.address(), Server::local_addr));
        let (real, embedded) = tokio::join!(real, embedded);
        Ok((real?, embedded?))
    }

    /// The first difference between the two that a script shows.
    ///
    /// # Errors
    /// As [`records`](Self::records).
    pub async fn difference(&self, script: &[Step]) -> Result<Option<Difference>> {
        let (real, embedded) = self.records(script).await?;
        Ok(compare(&real, &embedded))
    }
}
