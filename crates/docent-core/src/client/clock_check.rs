use super::Client;
use crate::cleanup::{ExactWrite, Near, WriteOutcome};
use crate::error::Error;
use crate::node::Stat;
use crate::operation::Idempotency;
use crate::session::{Cause, Lane};
use crate::time::Timestamp;
use docent_proto::Code;
use std::time::{Duration, SystemTime};

/// Rate of the client's [`Clock`](crate::Clock) compared with the servers', measured by
/// [`Client::check_clock`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClockCheck {
    /// Time that the leader of the servers measured.
    pub servers: Duration,
    /// Time that the client's clock measured.
    pub local: Duration,
    /// Maximum error of the comparison, in either direction, because both measurements took a round trip.
    pub uncertainty: Duration,
}

impl ClockCheck {
    /// Returns the minimum time that the client's clock lost because it stopped or ran slowly. A lease
    /// measured by this clock lasts longer than the servers assume, by the same amount. Zero if the check
    /// found no loss.
    pub fn behind(&self) -> Duration {
        self.servers.saturating_sub(self.local + self.uncertainty)
    }
}

/// Time at which the leader set one of the client's nodes, with the client's clock before and after.
struct Sample {
    servers: SystemTime,
    from: Timestamp,
    to: Timestamp,
}

/// Returns the time of the leader's clock, by a write to one of the client's own nodes.
///
/// # Errors
/// `NoAuth`, `Timeout`, `Closed`.
///
/// # Cancel safety
/// This function is cancel safe. No node is left behind.
pub async fn server_time(client: &Client) -> Result<SystemTime, Error> {
    Ok(sample(client).await?.servers)
}

/// Returns the time of day of a client's clock.
pub fn time_of_day(client: &Client) -> SystemTime {
    client.shared().config.clock.time_of_day()
}

/// Compares the clocks for `period`.
pub(super) async fn check_clock(client: &Client, period: Duration) -> Result<ClockCheck, Error> {
    let begin = sample(client).await?;
    tokio::time::sleep(period).await;
    let end = sample(client).await?;
    // The servers' times have a resolution of one millisecond.
    const GRAIN: Duration = Duration::from_millis(1);
    let (min, max) = (end.from.since(begin.to), end.to.since(begin.from));
    let uncertainty = (max - min) / 2;
    Ok(ClockCheck {
        servers: end.servers.duration_since(begin.servers).unwrap_or_default(),
        local: min + uncertainty,
        uncertainty: uncertainty + GRAIN,
    })
}

/// Sets a marker of the session, as an exact write does, and nothing else.
async fn sample(client: &Client) -> Result<Sample, Error> {
    let clock = &client.shared().config.clock;
    let mut attempts = client.attempts("check_clock", "/", Idempotency::Idempotent);
    loop {
        let generation = attempts.generation().await?;
        let Some(marker) = attempts.marker(&generation, Near::None).await? else { continue };
        let from = clock.now();
        let mut write = ExactWrite::submit(marker, [], Lane::Call);
        let cause = match write.outcome(attempts.deadline).await {
            WriteOutcome::Applied(_, stat) => {
                return Ok(Sample { servers: Stat::from(stat).modified, from, to: clock.now() });
            }
            WriteOutcome::NoMarker => continue,
            WriteOutcome::Refused(Code::THROTTLED) => Cause::QueueFull,
            WriteOutcome::Failed(_, code) | WriteOutcome::Refused(code) => return Err(attempts.code(code)),
            WriteOutcome::NotApplied(cause) | WriteOutcome::Unknown(cause) => cause,
        };
        drop(write);
        attempts.retry(&generation, false, cause).await?;
    }
}
