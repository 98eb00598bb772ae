//! Ends of timeouts, whatever their length.

use std::time::Duration;
use tokio::time::Instant;

/// As good as never: a timeout beyond the range of the clock is none.
const A_CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// The time `duration` after `now`, also for durations that no clock can show.
pub fn after(now: Instant, duration: Duration) -> Instant {
    now + duration.min(A_CENTURY)
}

/// The end of a `timeout` that begins now.
pub(crate) fn deadline(timeout: Duration) -> Instant {
    after(Instant::now(), timeout)
}
