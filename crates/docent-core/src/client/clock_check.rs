use super::Client;
use crate::cleanup::Leaving;
use crate::error::Error;
use crate::node::CreateMode;
use crate::time::Timestamp;
use std::time::{Duration, SystemTime};
use uuid::Uuid;

/// Below the client's namespace, outside of any recipe's layout.
const FOLDER: &str = "/_docent/markers";

/// Pace of the client's [`Clock`](crate::Clock) beside that of the servers, found by [`Client::check_clock`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClockCheck {
    /// Time that the leader of the servers measured.
    pub servers: Duration,
    /// Time that the client's clock measured.
    pub local: Duration,
    /// Most that the two may differ, in either direction, because both ends took a round trip.
    pub uncertainty: Duration,
}

impl ClockCheck {
    /// The time that the client's clock lost at least: it stood still, or ran slower. A lease that is
    /// measured by it lasts longer than the servers think, by as much. Zero when the clock is all right, as
    /// far as this can tell.
    pub fn behind(&self) -> Duration {
        self.servers.saturating_sub(self.local + self.uncertainty)
    }
}

/// Time at which the leader made a node of ours, with the times of the client's clock before and after.
struct Sample {
    servers: SystemTime,
    from: Timestamp,
    to: Timestamp,
}

/// Node of a [`Sample`]. Dropping it deletes it, also if its create is still on its way.
struct Probe<'a> {
    client: &'a Client,
    path: String,
}

impl Drop for Probe<'_> {
    fn drop(&mut self) {
        let core = self.client.core();
        drop(Leaving::new(core.generation(), core.namespace.join(&self.path)));
    }
}

impl Client {
    /// Compares the pace of the client's clock with that of the servers for `period`: for operators who want
    /// to know whether leases can be trusted on a machine. Pause or move the virtual machine meanwhile, and
    /// see whether the clock went on.
    ///
    /// It writes a node at the beginning and at the end, whose times the leader of the servers sets.
    ///
    /// # Assumptions
    /// The servers' time of day is not set during the check, and they have the same leader, or leaders with
    /// the same time. It finds what happens during the check, and no less than a round trip: a clock that was
    /// all right may be stopped later.
    ///
    /// # Errors
    /// `NoAuth`, `Timeout`, `Closed`; `OutcomeUnknown` when the reply to one of the writes was lost.
    ///
    /// # Cancel safety
    /// This method is cancel safe: the nodes are deleted in the background.
    pub async fn check_clock(&self, period: Duration) -> Result<ClockCheck, Error> {
        let begin = self.sample().await?;
        tokio::time::sleep(period).await;
        let end = self.sample().await?;
        // The servers' times are whole milliseconds.
        const GRAIN: Duration = Duration::from_millis(1);
        let (least, most) = (end.from.since(begin.to), end.to.since(begin.from));
        let uncertainty = (most - least) / 2;
        Ok(ClockCheck {
            servers: end.servers.duration_since(begin.servers).unwrap_or_default(),
            local: least + uncertainty,
            uncertainty: uncertainty + GRAIN,
        })
    }

    async fn sample(&self) -> Result<Sample, Error> {
        let clock = &self.core().config.clock;
        let probe = Probe { client: self, path: format!("{FOLDER}/{}", Uuid::new_v4()) };
        let from = clock.now();
        let created = self.create(&probe.path, "", CreateMode::Ephemeral).await?;
        Ok(Sample { servers: created.stat.created, from, to: clock.now() })
    }
}
