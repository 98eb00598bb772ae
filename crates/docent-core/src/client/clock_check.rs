use super::Client;
use crate::cleanup::{Deletion, OwnedNode};
use crate::error::Error;
use crate::node::CreateMode;
use crate::node::namespace::OWN_FOLDER;
use crate::time::Timestamp;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use uuid::Uuid;

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
        let shared = self.client.shared();
        let (generation, path) = (shared.generation(), shared.namespace.join(&self.path));
        drop(Deletion::new(Arc::new(OwnedNode::by_name(Arc::clone(&generation), path, 0))));
    }
}

/// Time of the leader's clock, by a node of the client's own that is deleted again.
///
/// # Errors
/// `NoAuth`, `Timeout`, `Closed`.
///
/// # Cancel safety
/// This function is cancel safe: no node is left behind.
pub async fn server_time(client: &Client) -> Result<SystemTime, Error> {
    Ok(sample(client).await?.servers)
}

/// Compares the clocks for `period`.
pub(super) async fn check_clock(client: &Client, period: Duration) -> Result<ClockCheck, Error> {
    let begin = sample(client).await?;
    tokio::time::sleep(period).await;
    let end = sample(client).await?;
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

async fn sample(client: &Client) -> Result<Sample, Error> {
    let clock = &client.shared().config.clock;
    let probe = Probe { client, path: format!("{OWN_FOLDER}/{}", Uuid::new_v4()) };
    let from = clock.now();
    let created = client.create(&probe.path, "", CreateMode::Ephemeral).await?;
    Ok(Sample { servers: created.stat.created, from, to: clock.now() })
}
