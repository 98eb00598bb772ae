//! Failures of copies during traffic.

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

/// Time after a failure in which callers notice most of its effects.
pub const MOMENT: Duration = Duration::from_secs(1);

/// Longer than a session needs to expire and another one to begin.
const PATIENCE: Duration = Duration::from_secs(60);

/// Running copies, and requests to them.
#[derive(Debug)]
pub struct Stage {
    /// Processes of the copies.
    pub fleet: Fleet,
    /// Client of the caller.
    pub client: Client,
    /// Caller of the copies.
    pub caller: Caller,
    traffic: Option<Traffic>,
}

impl Stage {
    /// Starts copies, and waits until the caller knows all of them.
    ///
    /// # Errors
    /// If a copy does not start.
    pub async fn set(launch: Launch, names: &[&str]) -> anyhow::Result<Self> {
        Stock::open(&launch.database())?;
        let client = launch.coordination.client("caller").connect().await?;
        let caller = Caller::open(&client).await?;
        let mut fleet = Fleet::new(launch);
        for name in names {
            fleet.open(name).await?;
        }
        let known = |shops: &Instances<()>| names.iter().all(|name| shops.get(name).is_some());
        until(&caller, known).await.context("the copies did not register in time")?;
        Ok(Self { fleet, client, caller, traffic: None })
    }

    /// Starts to send requests.
    #[must_use]
    pub fn under_traffic(mut self) -> Self {
        self.traffic = Some(Traffic::start(self.caller.clone()));
        self
    }

    /// Returns a report of the requests that began in a past period.
    async fn report(&self, from: Instant, to: Instant) -> Report {
        match &self.traffic {
            Some(traffic) => traffic.report(from, to).await,
            None => Report::default(),
        }
    }

    /// Returns a report of the requests that begin while `work` is running, and at least for one [`MOMENT`].
    pub async fn during<T>(&self, work: impl Future<Output = T>) -> (T, Report) {
        let from = Instant::now();
        let done = work.await;
        sleep_until(from + MOMENT).await;
        (done, self.report(from, Instant::now()).await)
    }

    /// Kills a copy. Returns reports of the moment after the kill, and of the time until the copy left the
    /// list.
    ///
    /// # Errors
    /// If the copy was not running, or stays in the list.
    pub async fn kill(&mut self, name: &str) -> anyhow::Result<(Report, Report)> {
        let from = Instant::now();
        self.fleet.kill(name).await?;
        self.until_removed(name).await?;
        sleep_until(from + MOMENT).await;
        let moment = self.report(from, from + MOMENT).await;
        Ok((moment, self.report(from, Instant::now()).await))
    }

    /// Suspends a copy's process (SIGSTOP) until its session has expired, then resumes it, and waits until it
    /// is in the list again.
    ///
    /// If the copy was not running, or does not return to the list.
    pub async fn freeze(&self, name: &str) -> anyhow::Result<Report> {
        self.freeze_for(name, Duration::ZERO).await
    }

    /// Suspends a copy like [`freeze`](Self::freeze), for at least the time `least`.
    ///
    /// # Errors
    /// Those of [`freeze`](Self::freeze).
    pub async fn freeze_for(&self, name: &str, least: Duration) -> anyhow::Result<Report> {
        let from = Instant::now();
        self.fleet.copy(name)?.signal(Signal::STOP)?;
        self.until_removed(name).await?;
        sleep_until(from + least).await;
        self.fleet.copy(name)?.signal(Signal::CONT)?;
        self.until_known(name).await?;
        Ok(self.report(from, Instant::now()).await)
    }

    /// Asks a copy to stop (SIGTERM). Returns the last line of its output, and a report.
    ///
    /// # Errors
    /// If the copy was not running, or fails.
    pub async fn drain(&mut self, name: &str) -> anyhow::Result<(String, Report)> {
        let from = Instant::now();
        let last_line = self.fleet.stop(name).await?;
        sleep_until(from + MOMENT).await;
        Ok((last_line, self.report(from, Instant::now()).await))
    }

    /// Starts a copy, and waits until the caller knows it.
    ///
    /// # Errors
    /// If the copy does not start.
    pub async fn open(&mut self, name: &str) -> anyhow::Result<()> {
        self.fleet.open(name).await?;
        self.until_known(name).await
    }

    /// Waits until the caller knows a copy.
    ///
    /// # Errors
    /// If this takes too long.
    pub async fn until_known(&self, name: &str) -> anyhow::Result<()> {
        let known = |shops: &Instances<()>| shops.get(name).is_some();
        until(&self.caller, known).await.with_context(|| format!("{name} did not register in time"))
    }

    /// Waits until the caller no longer knows a copy.
    ///
    /// # Errors
    /// If this takes too long.
    pub async fn until_removed(&self, name: &str) -> anyhow::Result<()> {
        let is_removed = |shops: &Instances<()>| shops.get(name).is_none();
        until(&self.caller, is_removed).await.with_context(|| format!("{name} is still registered"))
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
