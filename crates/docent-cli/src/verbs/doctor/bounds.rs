use super::server::alone;
use docent::client::{Error, Options};
use docent::transport::ServerAddress;
use std::fmt;
use std::time::Duration;

/// Shortest session timeout that can be requested.
const SHORTEST: Duration = Duration::from_millis(1);

/// Longest session timeout that can be requested: the protocol has 31 bits of milliseconds.
const LONGEST: Duration = Duration::from_millis(i32::MAX as u64);

/// Ticks of `minSessionTimeout` and `maxSessionTimeout` if the configuration sets neither.
const DEFAULT_TICKS: (u32, u32) = (2, 20);

/// Shortest and longest session timeout that a server grants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) min: Duration,
    pub(super) max: Duration,
}

impl Bounds {
    /// Requests sessions with the shortest and the longest timeout from `server` alone, and ends them again.
    pub(super) async fn of(server: &ServerAddress, options: &Options) -> Result<Self, Error> {
        Ok(Self {
            min: granted(server, options, SHORTEST).await?,
            max: granted(server, options, LONGEST).await?,
        })
    }

    /// Returns the tick for which both values are the defaults, or `None` if they were set in another way.
    pub(super) fn tick(self) -> Option<Duration> {
        let tick = self.min / DEFAULT_TICKS.0;
        (tick * DEFAULT_TICKS.1 == self.max && !tick.is_zero()).then_some(tick)
    }
}

/// Formatted as `4s to 40s`.
impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} to {:?}", self.min, self.max)
    }
}

/// Returns the timeout of a session for which `requested` was requested.
async fn granted(server: &ServerAddress, options: &Options, requested: Duration) -> Result<Duration, Error> {
    let mut options = alone(server, options);
    options.session_timeout = Some(requested);
    let client = options.builder()?.connect().await?;
    let granted = client.session_timeout().unwrap_or(requested);
    client.close().await;
    Ok(granted)
}

#[cfg(test)]
mod tests {
    use super::Bounds;
    use std::time::Duration;

    #[test]
    fn bounds_imply_the_tick_only_if_both_agree() {
        let tick =
            |min, max| Bounds { min: Duration::from_millis(min), max: Duration::from_millis(max) }.tick();
        assert_eq!(tick(4_000, 40_000), Some(Duration::from_secs(2)));
        assert_eq!(tick(400, 60_000), None);
        assert_eq!(tick(0, 0), None);
    }
}
