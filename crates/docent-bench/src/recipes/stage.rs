use super::counts::Counts;
use super::driver::{Driver, Mark};
use super::load::Load;
use super::peers;
use super::plan::Plan;
use super::populated::Populated;
use super::results::{Counted, QUIET, Results, Sample};
use super::side::Side;
use super::workload::{Role, Workload};
use anyhow::{Context, Result};
use docent_battery::{Proxy, RealServer, ServerOptions};
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// An in-memory folder that most Linux systems have.
const IN_MEMORY: &str = "/dev/shm";
/// Maximum number of attempts to take a sample while other processes are busy.
const ATTEMPTS: usize = 3;

/// The server and the drivers.
///
/// # On drop
/// All processes are killed, and the server's folder is removed.
#[derive(Debug)]
pub(super) struct Stage {
    plan: Plan,
    since: Instant,
    server: RealServer,
    /// One driver for each side that takes part.
    drivers: Vec<Driver>,
    populated: Populated,
    paths: u64,
}

impl Stage {
    /// Starts all processes that these workloads need.
    ///
    /// # Errors
    ///
    /// Fails if a library is not installed, naming what to do.
    pub(super) async fn open(plan: Plan, workloads: &[&'static Workload]) -> Result<Self> {
        let mut options =
            ServerOptions::default().long_lived(true).container_check_interval(Duration::from_secs(60));
        if Path::new(IN_MEMORY).is_dir() {
            options = options.parent_folder(IN_MEMORY);
        }
        let server = RealServer::start_with(options).await?;
        let mut drivers = Vec::new();
        for side in Side::ALL {
            let mut orders = workloads.iter().flat_map(|one| Role::ALL.map(|role| one.order(role)));
            if orders.any(|order| order.is_some_and(|(other, _)| other == side)) {
                drivers.push(peers::start(side).await?);
            }
        }
        let (since, populated) = (Instant::now(), Populated::default());
        Ok(Self { plan, since, server, drivers, populated, paths: 0 })
    }

    /// Closes all sessions gracefully.
    pub(super) async fn close(self) {
        self.populated.close().await;
    }

    /// Names of the server and of the libraries, with their versions.
    pub(super) async fn names(&self) -> Result<String> {
        let server = version(&self.server).await?;
        let curator = peers::curator_version()?;
        Ok(format!("ZooKeeper {server}, Docent {}, Curator {curator}", env!("CARGO_PKG_VERSION")))
    }

    /// Returns true if no workload of a further round may begin.
    pub(super) fn is_late(&self) -> bool {
        self.since.elapsed() > self.plan.limit
    }

    /// Takes a sample, and repeats it while other processes are busy. Returns `None` if the side does not
    /// take part in the workload.
    ///
    /// # Errors
    ///
    /// Fails if the driver fails.
    pub(super) async fn sample(
        &mut self,
        workload: &'static Workload,
        role: Role,
        round: u32,
        results: &mut Results,
    ) -> Result<Option<Sample>> {
        let Some((side, order)) = workload.order(role) else { return Ok(None) };
        let server = self.server.connect_string();
        let mut attempt = 1;
        loop {
            let line = self.line(order, &server, workload, &self.plan.settings(workload)).await?;
            if workload.is_memory() {
                let answer = peers::start(side).await?.run(&line, |_| {}).await?;
                return Ok(Some(Sample { round, answer, foreign: 0.0 }));
            }
            let load = Load::watch(self.processes()?)?;
            let answer = driver(&mut self.drivers, side)?.run(&line, |_| {}).await?;
            let foreign = load.cores()?;
            let is_last = attempt == ATTEMPTS || self.since.elapsed() > self.plan.patience;
            if foreign <= QUIET || is_last {
                return Ok(Some(Sample { round, answer, foreign }));
            }
            results.dropped += 1;
            attempt += 1;
        }
    }

    /// Counts requests and bytes of a shorter sample. Returns `None` if the side does not take part in the
    /// workload.
    ///
    /// # Errors
    ///
    /// Fails if the driver fails.
    pub(super) async fn counted(
        &mut self,
        workload: &'static Workload,
        role: Role,
    ) -> Result<Option<Counted>> {
        let Some((side, order)) = workload.order(role) else { return Ok(None) };
        // A separate proxy, because its trace grows.
        let proxy = Proxy::start(self.server.address()).await?;
        let line = self.line(order, &proxy.connect_string(), workload, &self.plan.counting(workload)).await?;
        let (mut before, mut counts) = (0, Counts::default());
        let driver = driver(&mut self.drivers, side)?;
        let answer = driver.run(&line, |mark| match mark {
            Mark::Start => before = proxy.trace().len(),
            Mark::Stop => counts = Counts::of(&proxy.trace()[before..]),
        });
        let answer = answer.await?;
        let operations =
            answer.figure("ops").filter(|count| *count > 0.0).context("the driver did no operations")?;
        Ok(Some(Counted { operations, counts }))
    }

    /// Records a failure, and restarts the side's driver.
    ///
    /// # Errors
    ///
    /// Fails if the driver does not start.
    pub(super) async fn failed(
        &mut self,
        workload: &'static Workload,
        role: Role,
        error: &anyhow::Error,
        results: &mut Results,
    ) -> Result<()> {
        eprintln!("{}: {error:#}", workload.name);
        results.failures.push(format!("{}: {error:#}", workload.name));
        if let Some((side, _)) = workload.order(role) {
            *driver(&mut self.drivers, side)? = peers::start(side).await?;
        }
        Ok(())
    }

    /// Returns an order with an unused path, or with the path of the existing services.
    async fn line(
        &mut self,
        order: &str,
        connect: &str,
        workload: &Workload,
        settings: &str,
    ) -> Result<String> {
        let path = if workload.instances > 0 {
            self.populated.folder(&self.server.connect_string(), workload.instances).await?
        } else {
            self.paths += 1;
            format!("/bench/{}", self.paths)
        };
        let (name, own) =
            order.split_once(' ').map_or((order, String::new()), |(name, own)| (name, format!(" {own}")));
        Ok(format!("{name} {connect} {path}{own} {settings}"))
    }

    /// Ids of all processes that belong to the bench.
    fn processes(&self) -> Result<Vec<u32>> {
        let server = self.server.pid().context("the server has ended")?;
        let mut processes = vec![std::process::id(), server];
        for driver in &self.drivers {
            processes.push(driver.pid()?);
        }
        Ok(processes)
    }
}

fn driver(drivers: &mut [Driver], side: Side) -> Result<&mut Driver> {
    let driver = drivers.iter_mut().find(|driver| driver.side == side);
    driver.with_context(|| format!("{side} has no driver"))
}

/// Returns the version that a server reports.
async fn version(server: &RealServer) -> Result<String> {
    let mut link = TcpStream::connect(server.address()).await?;
    link.write_all(b"srvr").await?;
    let mut answer = String::new();
    link.read_to_string(&mut answer).await?;
    let line = answer.lines().next().unwrap_or_default();
    let version = line.trim_start_matches("Zookeeper version: ").split(['-', ',']).next();
    Ok(version.unwrap_or_default().to_owned())
}
