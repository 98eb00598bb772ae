use super::Client;
use crate::cleanup::{Ended, ExactWrite, Near};
use crate::error::Error;
use crate::node::Stat;
use crate::operation::Idempotency;
use crate::session::{Cause, Lane};
use crate::time::Timestamp;
use docent_proto::Code;
use std::time::{Duration, SystemTime};

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

/// Time at which the leader set a node of ours, with the times of the client's clock before and after.
struct Sample {
    servers: SystemTime,
    from: Timestamp,
    to: Timestamp,
}

/// Time of the leader's clock, by a write to a node of the client's own.
///
/// # Errors
/// `NoAuth`, `Timeout`, `Closed`.
///
/// # Cancel safety
/// This function is cancel safe: no node is left behind.
pub async fn server_time(client: &Client) -> Result<SystemTime, Error> {
    Ok(sample(client).await?.servers)
}

/// The time of day of a client's clock.
pub fn time_of_day(client: &Client) -> SystemTime {
    client.shared().config.clock.time_of_day()
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

/// Sets a marker of the session, as an exact write does, and nothing else.
async fn sample(client: &Client) -> Result<Sample, Error> {
    let clock = &client.shared().config.clock;
    let mut attempts = client.attempts("check_clock", "/", Idempotency::Idempotent);
    loop {
        let generation = attempts.generation().await?;
        let Some(marker) = attempts.marker(&generation, Near::Nothing).await? else { continue };
        let from = clock.now();
        let mut write = ExactWrite::submit(marker, [], Lane::Call);
        let cause = match write.ended(attempts.deadline).await {
            Ended::Applied(_, stat) => {
                return Ok(Sample { servers: Stat::from(stat).modified, from, to: clock.now() });
            }
            Ended::NoMarker => continue,
            Ended::Refused(Code::THROTTLED) => Cause::QueueFull,
            Ended::Failed(_, code) | Ended::Refused(code) => return Err(attempts.code(code)),
            Ended::NotApplied(cause) | Ended::Unknown(cause) => cause,
        };
        drop(write);
        attempts.retry(&generation, false, cause).await?;
    }
}
