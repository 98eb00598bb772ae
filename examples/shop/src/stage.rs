//! Mishaps of copies while requests go on.

use crate::caller::Caller;
use crate::fleet::{Fleet, Launch};
use crate::stock::Stock;
use crate::traffic::{Report, Traffic};
use anyhow::Context;
use docent::Client;
use docent::discovery::Instances;
use futures_util::StreamExt;
use rustix::process::Signal;
use std::future::Future;
use std::time::Duration;
use tokio::time::{Instant, sleep_until, timeout};

/// Time after a mishap in which callers notice most of it.
pub const MOMENT: Duration = Duration::from_secs(1);

/// Longer than a session needs to end and another one to begin.
const PATIENCE: Duration = Duration::from_secs(60);

/// Copies that are open, and requests to them.
#[derive(Debug)]
pub struct Stage {
    /// The processes.
    pub fleet: Fleet,
    /// Session of the caller.
    pub client: Client,
    /// Asks the copies.
    pub caller: Caller,
    traffic: Option<Traffic>,
}

impl Stage {
    /// Opens copies, and waits until the caller knows all of them.
    ///
    /// # Errors
    /// When a copy does not start.
    pub async fn set(launch: Launch, names: &[&str]) -> anyhow::Result<Self> {
        Stock::open(&launch.database())?;
        let client = launch.coordination.client("caller").connect().await?;
        let caller = Caller::open(&client).await?;
        let mut fleet = Fleet::new(launch);
        for name in names {
            fleet.open(name).await?;
        }
        let known = |shops: &Instances<()>| names.iter().all(|name| shops.get(name).is_some());
        until(&caller, known).await.context("the copies do not register")?;
        Ok(Self { fleet, client, caller, traffic: None })
    }

    /// Begins to send requests.
    #[must_use]
    pub fn under_traffic(mut self) -> Self {
        self.traffic = Some(Traffic::start(self.caller.clone()));
        self
    }

    /// Report of the requests that began in a time that is over.
    async fn report(&self, from: Instant, to: Instant) -> Report {
        match &self.traffic {
            Some(traffic) => traffic.report(from, to).await,
            None => Report::default(),
        }
    }

    /// Report of the requests that begin while `work` is done, and at least for a [`MOMENT`].
    pub async fn during<T>(&self, work: impl Future<Output = T>) -> (T, Report) {
        let from = Instant::now();
        let done = work.await;
        sleep_until(from + MOMENT).await;
        (done, self.report(from, Instant::now()).await)
    }

    /// Kills a copy. Returns reports of the moment after that, and of the time until it was known to be gone.
    ///
    /// # Errors
    /// When it was not open, or stays known.
    pub async fn kill(&mut self, name: &str) -> anyhow::Result<(Report, Report)> {
        let from = Instant::now();
        self.fleet.kill(name).await?;
        self.until_gone(name).await?;
        sleep_until(from + MOMENT).await;
        let moment = self.report(from, from + MOMENT).await;
        Ok((moment, self.report(from, Instant::now()).await))
    }

    /// Stops a copy's process (SIGSTOP) until its session has ended, then lets it go on, until it is known
    /// again.
    ///
    /// # Errors
    /// When it was not open, or does not come back.
    pub async fn freeze(&self, name: &str) -> anyhow::Result<Report> {
        self.freeze_for(name, Duration::ZERO).await
    }

    /// As [`freeze`](Self::freeze), for at least so long.
    ///
    /// # Errors
    /// As [`freeze`](Self::freeze).
    pub async fn freeze_for(&self, name: &str, least: Duration) -> anyhow::Result<Report> {
        let from = Instant::now();
        self.fleet.copy(name)?.signal(Signal::STOP)?;
        self.until_gone(name).await?;
        sleep_until(from + least).await;
        self.fleet.copy(name)?.signal(Signal::CONT)?;
        self.until_known(name).await?;
        Ok(self.report(from, Instant::now()).await)
    }

    /// Asks a copy to stop (SIGTERM). Returns its last line, and a report.
    ///
    /// # Errors
    /// When it was not open, or fails.
    pub async fn drain(&mut self, name: &str) -> anyhow::Result<(String, Report)> {
        let from = Instant::now();
        let said = self.fleet.stop(name).await?;
        sleep_until(from + MOMENT).await;
        Ok((said, self.report(from, Instant::now()).await))
    }

    /// Starts a copy, and waits until the caller knows it.
    ///
    /// # Errors
    /// When it does not start.
    pub async fn open(&mut self, name: &str) -> anyhow::Result<()> {
        self.fleet.open(name).await?;
        self.until_known(name).await
    }

    /// Waits until the caller knows a copy.
    ///
    /// # Errors
    /// When that takes too long.
    pub async fn until_known(&self, name: &str) -> anyhow::Result<()> {
        let known = |shops: &Instances<()>| shops.get(name).is_some();
        until(&self.caller, known).await.with_context(|| format!("{name} does not register"))
    }

    /// Waits until the caller does not know a copy any more.
    ///
    /// # Errors
    /// When that takes too long.
    pub async fn until_gone(&self, name: &str) -> anyhow::Result<()> {
        let gone = |shops: &Instances<()>| shops.get(name).is_none();
        until(&self.caller, gone).await.with_context(|| format!("{name} stays registered"))
    }
}

async fn until(caller: &Caller, holds: impl Fn(&Instances<()>) -> bool) -> anyhow::Result<()> {
    let mut changes = caller.shops().changes();
    let waiting = async {
        while !holds(&caller.shops().instances()) {
            changes.next().await.context("the client was closed")??;
        }
        Ok(())
    };
    timeout(PATIENCE, waiting).await?
}
