use crate::compare::{Difference, compare};
use crate::run::{Record, run};
use crate::script::Step;
use anyhow::Result;
use docent_battery::{RealServer, ServerOptions};
use docent_server::{Limits, Server};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Unit of session expiry, and pause between checks of containers. It is short, because scripts wait for
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
    /// `None` if the real server is compared with itself.
    embedded: Option<Server>,
}

/// Starts a real server for scripts.
///
/// # Errors
/// Returns an error if ZooKeeper is not installed or does not start.
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
/// Returns an error if no port is free.
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

/// A root path that no other run of this process uses. All roots have the same length.
fn root() -> String {
    format!("/d{:08}", ROOTS.fetch_add(1, Ordering::Relaxed))
}

/// Runs a script on the server at `address`.
///
/// # Errors
/// Returns an error if the server is unreachable or does not reply.
pub(crate) async fn record(script: &[Step], address: SocketAddr) -> Result<Record> {
    run(script, address, &root()).await
}

impl Servers {
    /// Starts both servers.
    ///
    /// # Errors
    /// Returns an error if a server does not start.
    pub async fn start() -> Result<Self> {
        Ok(Self { real: real().await?, embedded: Some(embedded().await?) })
    }

    /// Starts only a real server, to compare it with itself. Scripts for which its own records differ mean
    /// nothing.
    ///
    /// # Errors
    /// Returns an error if the server does not start.
    pub async fn start_real() -> Result<Self> {
        Ok(Self { real: real().await?, embedded: None })
    }

    /// Replaces the embedded server with a new one.
    ///
    /// # Errors
    /// Returns an error if no port is free.
    pub async fn renew_embedded(&mut self) -> Result<()> {
        self.embedded = Some(embedded().await?);
        Ok(())
    }

    /// Runs a script on both servers, and returns the records of the real and of the embedded server.
    ///
    /// # Errors
    /// Returns an error if a server is unreachable or does not reply.
    pub async fn records(&self, script: &[Step]) -> Result<(Record, Record)> {
        let real = record(script, self.real.address());
        let embedded = record(script, self.embedded.as_ref().map_or(self.real.address(), Server::local_addr));
        let (real, embedded) = tokio::join!(real, embedded);
        Ok((real?, embedded?))
    }

    /// Runs a script on both servers, and returns the first difference.
    ///
    /// # Errors
    /// See [`records`](Self::records).
    pub async fn difference(&self, script: &[Step]) -> Result<Option<Difference>> {
        let (real, embedded) = self.records(script).await?;
        Ok(compare(&real, &embedded))
    }
}
